// Reduce on read: the derived columns become one answer for the pool. The order of addition is part
// of the contract (R4): four partial sums by index modulo 4, combined as (s0 + s2) + (s1 + s3), then
// the rest one by one.
//
//   sums of lanes:   a = [s0, s1]   b = [s2, s3]   a + b = [s0 + s2, s1 + s3]

import { Column, RESULT_PTR, columnPtr } from "./layout";

let freshFor: f64 = 0;
let scoredFor: f64 = 0;
/** All bits set when endpoints that do not score still count, with the score 1. */
let countUnscored: i64 = -1;

/**
 * Sets what the clock means. A reading is fresh while |now - updateTime| <= `staleness`, and scores
 * by its load until it is `scoredUntil` old (>= `staleness`; longer under the policy `hold`). With
 * `ignore`, endpoints that do not score leave the sum and the divisor. Times in ms.
 */
export function configure(staleness: f64, scoredUntil: f64, ignore: bool): void {
  freshFor = staleness;
  scoredFor = scoredUntil;
  countUnscored = ignore ? 0 : -1;
}

// One reduction at a time: what its parts add up. Globals, because a function returns one value.
let sum: f64 = 0;
let cappedSum: f64 = 0;
let weightedSum: f64 = 0;
let weightSum: f64 = 0;
let highest: f64 = 0;
let oldestFresh: f64 = Infinity;
let candidates: u32 = 0;
let left: u32 = 0;
let stale: u32 = 0;
let unusable: u32 = 0;
let nextEdge: f64 = Infinity;
/** The mask that makes a fresh endpoint a candidate. */
let mask: usize = 0;

/**
 * Writes the result block for the first `n` endpoints at the time `now`; with `list`, also the
 * indices of the candidates, which are the fresh endpoints that `filter` lets pass.
 */
// @ts-ignore: decorator
@inline
export function reducePool(n: u32, now: f64, filter: Column, list: bool): void {
  mask = columnPtr(filter);
  left = stale = unusable = 0;
  nextEdge = Infinity;
  reduceLanes(n & ~3, now, list);
  finish(n, now, list);
}

// @ts-ignore: decorator
@inline
function reduceLanes(whole: u32, now: f64, list: bool): void {
  const nows = f64x2.splat(now);
  const ones = f64x2.splat(1);
  const never = f64x2.splat(Infinity);
  const freshUntil = f64x2.splat(freshFor);
  let sumA = f64x2.splat(0), sumB = f64x2.splat(0);
  let cappedA = f64x2.splat(0), cappedB = f64x2.splat(0);
  let weightedA = f64x2.splat(0), weightedB = f64x2.splat(0);
  let weightA = f64x2.splat(0), weightB = f64x2.splat(0);
  let top = f64x2.splat(0);
  let oldest = never;
  let open = i64x2.splat(0);
  const scores = columnPtr(Column.SCORE), passes = mask, times = columnPtr(Column.UPDATE_TIME);
  const weights = columnPtr(Column.WEIGHT), first = columnPtr(Column.CANDIDATES);
  let next = first;
  for (let i: u32 = 0; i < whole; i += 4) {
    const at = (<usize>i) << 3;
    let timeA = v128.load(times + at), timeB = v128.load(times + at, 16);
    let partA = v128.load(scores + at), partB = v128.load(scores + at, 16);
    let shareA = v128.load(weights + at), shareB = v128.load(weights + at, 16);
    let openA = v128.load(passes + at), openB = v128.load(passes + at, 16);
    const ageA = f64x2.sub(nows, timeA), ageB = f64x2.sub(nows, timeB);
    const freshA = f64x2.le(f64x2.abs(ageA), freshUntil);
    const freshB = f64x2.le(f64x2.abs(ageB), freshUntil);
    // All four fresh is the rule, and then nothing needs a mask.
    if (!i64x2.all_true(v128.and(freshA, freshB))) {
      const scoredA = isScored(ageA), scoredB = isScored(ageB);
      countLanes(timeA, freshA, scoredA);
      countLanes(timeB, freshB, scoredB);
      const moving = v128.or(hasEdge(ageA, freshA, scoredA), hasEdge(ageB, freshB, scoredB));
      if (v128.any_true(moving)) noteEdges(now, times + at);
      const keep = i64x2.splat(countUnscored);
      const countA = v128.or(scoredA, keep), countB = v128.or(scoredB, keep);
      partA = v128.and(v128.bitselect(partA, ones, scoredA), countA);
      partB = v128.and(v128.bitselect(partB, ones, scoredB), countB);
      shareA = v128.and(shareA, countA);
      shareB = v128.and(shareB, countB);
      openA = v128.and(openA, freshA);
      openB = v128.and(openB, freshB);
      timeA = v128.bitselect(timeA, never, freshA);
      timeB = v128.bitselect(timeB, never, freshB);
    }
    sumA = f64x2.add(sumA, partA);
    sumB = f64x2.add(sumB, partB);
    cappedA = f64x2.add(cappedA, f64x2.pmin(partA, ones));
    cappedB = f64x2.add(cappedB, f64x2.pmin(partB, ones));
    weightedA = f64x2.add(weightedA, f64x2.mul(partA, shareA));
    weightedB = f64x2.add(weightedB, f64x2.mul(partB, shareB));
    weightA = f64x2.add(weightA, shareA);
    weightB = f64x2.add(weightB, shareB);
    top = f64x2.pmax(top, f64x2.pmax(partA, partB));
    oldest = f64x2.pmin(oldest, f64x2.pmin(timeA, timeB));
    if (list) {
      const bitsA = i64x2.bitmask(openA), bitsB = i64x2.bitmask(openB);
      // Without a branch: every index is stored, and the place moves on only past a candidate.
      store<u32>(next, i);
      next += <usize>((bitsA & 1) << 2);
      store<u32>(next, i + 1);
      next += <usize>((bitsA >> 1) << 2);
      store<u32>(next, i + 2);
      next += <usize>((bitsB & 1) << 2);
      store<u32>(next, i + 3);
      next += <usize>((bitsB >> 1) << 2);
    } else {
      open = i64x2.sub(open, i64x2.add(openA, openB));
    }
  }
  sum = addLanes(f64x2.add(sumA, sumB));
  cappedSum = addLanes(f64x2.add(cappedA, cappedB));
  weightedSum = addLanes(f64x2.add(weightedA, weightedB));
  weightSum = addLanes(f64x2.add(weightA, weightB));
  highest = f64.max(f64x2.extract_lane(top, 0), f64x2.extract_lane(top, 1));
  oldestFresh = f64.min(f64x2.extract_lane(oldest, 0), f64x2.extract_lane(oldest, 1));
  candidates = list
    ? <u32>((next - first) >>> 2)
    : <u32>(i64x2.extract_lane(open, 0) + i64x2.extract_lane(open, 1));
}

/** Lanes whose load counts: not from the future, not older than the policy lets score. */
// @ts-ignore: decorator
@inline
function isScored(age: v128): v128 {
  return v128.and(
    f64x2.ge(age, f64x2.splat(-freshFor)), f64x2.le(age, f64x2.splat(scoredFor)));
}

/** Counts two endpoints of a group in which not all are fresh. */
// @ts-ignore: decorator
@inline
function countLanes(time: v128, fresh: v128, scored: v128): void {
  const usable = f64x2.eq(time, time);
  stale += <u32>popcnt(i64x2.bitmask(v128.andnot(usable, fresh)));
  unusable += 2 - <u32>popcnt(i64x2.bitmask(usable));
  if (countUnscored == 0) left += 2 - <u32>popcnt(i64x2.bitmask(scored));
}

/** Lanes that time alone will move though they are not fresh: held ones, and the future's. */
// @ts-ignore: decorator
@inline
function hasEdge(age: v128, fresh: v128, scored: v128): v128 {
  return v128.or(v128.andnot(scored, fresh), f64x2.lt(age, f64x2.splat(-freshFor)));
}

/** As `noteEdge`, for the four endpoints whose times begin at `times`. */
function noteEdges(now: f64, times: usize): void {
  for (let end = times + 32; times < end; times += 8) noteEdge(now, f64.load(times));
}

// @ts-ignore: decorator
@inline
function addLanes(lanes: v128): f64 {
  return f64x2.extract_lane(lanes, 0) + f64x2.extract_lane(lanes, 1);
}

function reduceOne(i: u32, now: f64, list: bool): void {
  const at = (<usize>i) << 3;
  const time = f64.load(columnPtr(Column.UPDATE_TIME) + at);
  const age = now - time;
  const scored = age >= -freshFor && age <= scoredFor;
  const score = scored ? f64.load(columnPtr(Column.SCORE) + at) : 1;
  if (scored || countUnscored != 0) {
    const weight = f64.load(columnPtr(Column.WEIGHT) + at);
    sum += score;
    cappedSum += f64.min(score, 1);
    weightedSum += score * weight;
    weightSum += weight;
    highest = f64.max(highest, score);
  } else {
    left++;
  }
  if (f64.abs(age) <= freshFor) {
    oldestFresh = f64.min(oldestFresh, time);
    if (i64.load(mask + at) == 0) return;
    if (list) store<u32>(columnPtr(Column.CANDIDATES) + ((<usize>candidates) << 2), i);
    candidates++;
  } else if (time != time) {
    unusable++;
  } else {
    stale++;
    noteEdge(now, time);
  }
}

/** Notes when time alone will change the class of an endpoint that is held or from the future. */
function noteEdge(now: f64, time: f64): void {
  const age = now - time;
  if (age > freshFor && age <= scoredFor) {
    nextEdge = f64.min(nextEdge, time + scoredFor);
  } else if (age < -freshFor) {
    // A few roundings early, so that the subtraction cannot round to fresh before the edge; at
    // the edge itself R2 decides.
    const margin = (f64.abs(time) + freshFor) * 4.44e-16;
    nextEdge = f64.min(nextEdge, time - freshFor - margin);
  }
}

/**
 * Writes the score with which each of the first `n` endpoints counts at `now` (R3, R5). Two at a
 * time: columns hold an even number of endpoints, and what is behind `n` is nobody's.
 */
export function settle(n: u32, now: f64): void {
  const nows = f64x2.splat(now);
  const end = (<usize>n) << 3;
  for (let at: usize = 0; at < end; at += 16) {
    const scored = isScored(f64x2.sub(nows, v128.load(columnPtr(Column.UPDATE_TIME) + at)));
    const score = v128.load(columnPtr(Column.SCORE) + at);
    v128.store(
      columnPtr(Column.EFFECTIVE) + at, v128.bitselect(score, f64x2.splat(1), scored));
  }
}

/** The endpoints behind the last group of four, one by one, and then the result block. */
function finish(n: u32, now: f64, list: bool): void {
  for (let i = n & ~3; i < n; i++) reduceOne(i, now, list);
  const counted = <f64>(n - left);
  // Empty pool: 1. Nothing counted, which only `ignore` can do: 0.
  const none: f64 = n == 0 ? 1 : 0;
  // Weights that add up to Infinity cannot be divided by; the maximum is the safe bound.
  const weighted = weightSum < Infinity ? weightedSum / weightSum : highest;
  const any = counted != 0;
  f64.store(RESULT_PTR, any ? sum / counted : none, 0);
  f64.store(RESULT_PTR, any ? cappedSum / counted : none, 8);
  f64.store(RESULT_PTR, any ? weighted : none, 16);
  f64.store(RESULT_PTR, any ? highest : none, 24);
  f64.store(RESULT_PTR, <f64>(n - stale - unusable), 32);
  f64.store(RESULT_PTR, <f64>stale, 40);
  f64.store(RESULT_PTR, <f64>unusable, 48);
  f64.store(RESULT_PTR, <f64>candidates, 56);
  f64.store(RESULT_PTR, f64.min(nextEdge, oldestFresh + freshFor), 64);
}
