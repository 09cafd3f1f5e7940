// One simulated router: this package's own pool and flow scheduler, fed by scrapes that are late, and the
// policy that chooses. Everything that travels takes time on the event queue.

import { FlowScheduler } from "../flow/scheduler";
import type { LeasingSource } from "../max-of";
import { EndpointPool } from "../pool";
import type { EventQueue } from "./events";
import type { Fleet, Member } from "./fleet";
import type { Flight } from "./flight";
import type { Chooser, Policy } from "./policies";
import { Random } from "./random";
import type { ResolvedScenario } from "./scenario-reader";

/** Why a request was turned away. */
export type RejectionReason =
  | "saturated"
  | "ttl-expired"
  | "no-endpoints"
  | "endpoint-failed"
  | "shutting-down";

/** What a router tells. */
export interface RouterHost {
  sent(flight: Flight, member: Member): void;
  firstByte(flight: Flight): void;
  ended(flight: Flight): void;
  rejected(flight: Flight, reason: RejectionReason): void;
}

/** The shortest staleness that a scraper sets by itself, in ms. */
const SHORTEST_STALENESS_MS = 200;

/** One router. */
export class Router {
  readonly pool: EndpointPool;
  readonly #queue: EventQueue;
  readonly #fleet: Fleet;
  readonly #scenario: ResolvedScenario;
  readonly #host: RouterHost;
  readonly #wires: Random;
  readonly #chooser: Chooser | undefined;
  readonly #scheduler: FlowScheduler | undefined;
  #wakeAt = Number.POSITIVE_INFINITY;

  constructor(
    index: number,
    queue: EventQueue,
    fleet: Fleet,
    scenario: ResolvedScenario,
    policy: Policy,
    seed: number,
    host: RouterHost,
  ) {
    this.#queue = queue;
    this.#fleet = fleet;
    this.#scenario = scenario;
    this.#host = host;
    this.#wires = new Random(seed, `wires of router ${index}`);
    const random = new Random(seed, `choices of router ${index}`);
    this.pool = new EndpointPool(scenario.detector, {
      ...policy.pool,
      capacity: fleet.members.length,
      clock: () => queue.now,
      random: random.next,
    });
    const { interval } = scenario.scrape;
    this.pool.setDefaultStaleness(Math.max(SHORTEST_STALENESS_MS, 3 * interval));
    for (const { id, spec } of fleet.members) this.pool.add(id, spec.options);
    this.#chooser = policy.chooser?.({ pool: this.pool, random, router: index, fleet });
    this.#scheduler = this.#makeScheduler();
    for (const member of fleet.members) this.#startScraping(member);
  }

  /** Requests that wait at this router. */
  get waiting(): number {
    return this.#scheduler?.waiting ?? 0;
  }

  /** Requests on their way that this router counts. */
  get leases(): number {
    let sum = 0;
    for (const endpoint of this.pool) sum += endpoint.leases;
    return sum;
  }

  /** A request arrives. */
  take(flight: Flight): void {
    const { flow, traffic } = this.#scenario;
    const { tenant, promptTokens } = flight.request;
    if (this.#scheduler === undefined || flow === undefined) {
      this.#place(flight);
      return;
    }
    const now = this.#queue.now;
    const band = traffic[tenant]?.band ?? 0;
    const request = { band, flow: String(tenant), ttlMs: flow.ttlMs, tokens: promptTokens };
    flight.ticket = this.#scheduler.enqueue(
      { ...request, exclude: flight.failedOn },
      {
        admitted: (lease) => {
          flight.lease = lease;
          this.#send(flight);
        },
        refused: ({ reason }) => {
          if (reason === "cancelled") return; // its client gave it up, who knows that
          this.#host.rejected(flight, reason);
        },
        failed: (error) => {
          throw error;
        },
      },
      now,
    );
    this.#planWake();
  }

  /** Its client gives a request up. */
  giveUp(flight: Flight): void {
    if (flight.ticket?.isWaiting) this.#scheduler?.cancel(flight.ticket, this.#queue.now);
    const { job, member, attempt } = flight;
    if (flight.lease === undefined || member === undefined) return;
    flight.lease.release({ failed: true });
    flight.attempt = attempt + 1;
    this.#leaveMember(flight, member);
    if (job !== undefined) this.#travel(() => member.engine.cancel(job));
    this.#pump();
  }

  /** Something changed, or a time has come. */
  #pump(): void {
    if (this.#scheduler === undefined || this.#scheduler.waiting === 0) return;
    this.#scheduler.pump(this.#queue.now);
    this.#planWake();
  }

  /** As the flow controller does: one timer, for whatever comes first. */
  #planWake(): void {
    if (this.#scheduler === undefined || this.#scheduler.waiting === 0) return;
    const { now } = this.#queue;
    const { validUntil } = this.pool.evaluate();
    const at = Math.min(this.#scheduler.nextExpiry, Math.max(validUntil, now) + 1);
    if (at >= this.#wakeAt && this.#wakeAt > now) return;
    this.#wakeAt = at;
    this.#queue.at(at, () => {
      if (this.#wakeAt !== at) return;
      this.#wakeAt = Number.POSITIVE_INFINITY;
      this.#pump();
    });
  }

  #makeScheduler(): FlowScheduler | undefined {
    const { flow } = this.#scenario;
    if (flow === undefined) return undefined;
    const { limits, ceilings, maxRequests, aggregation, mode } = flow;
    const chooser = this.#chooser;
    const { pool } = this;
    const source: LeasingSource = {
      get size() {
        return pool.size;
      },
      saturation: (which) => pool.saturation(which),
      evaluate: () => pool.evaluate(),
      closedBy: (which) => pool.closedBy(which),
      now: () => pool.now(),
      subscribe: (listener) => pool.subscribe(listener),
      lease: (request) => {
        if (chooser === undefined) return pool.lease(request);
        const exclude = new Set(request.exclude);
        const id = chooser({ tokens: request.tokens ?? 0, exclude });
        return id === undefined ? undefined : pool.acquire(id, { tokens: request.tokens });
      },
    };
    return new FlowScheduler(source, {
      bandLimits: limits,
      ceilings,
      maxRequests,
      aggregation,
      shed: mode === "shed",
    });
  }

  /** Sends a request without asking the flow controller. */
  #place(flight: Flight): void {
    const { failedOn: exclude } = flight;
    const tokens = flight.request.promptTokens;
    if (this.#chooser === undefined) flight.lease = this.pool.lease({ tokens, exclude });
    else {
      const id = this.#chooser({ tokens, exclude });
      flight.lease = id === undefined ? undefined : this.pool.acquire(id, { tokens });
    }
    if (flight.lease !== undefined) this.#send(flight);
    else this.#host.rejected(flight, exclude.size > 0 ? "endpoint-failed" : "no-endpoints");
  }

  #send(flight: Flight): void {
    const id = flight.lease?.endpoint.id ?? "";
    const member = this.#fleet.byId.get(id) as Member; // the pool has the fleet's endpoints
    flight.member = member;
    flight.state = "sent";
    flight.hasToken = false;
    member.inFlight++;
    member.pendingTokens += flight.request.promptTokens;
    this.#host.sent(flight, member);
    const attempt = ++flight.attempt;
    this.#travel(() => this.#reach(flight, member, attempt), member.spec.model.ttftConst / 2);
  }

  /** The request is at its engine. */
  #reach(flight: Flight, member: Member, attempt: number): void {
    if (flight.attempt !== attempt) return;
    const half = member.spec.model.ttftConst / 2;
    const back = (run: () => void, ms = half) =>
      this.#travel(() => {
        if (flight.attempt === attempt) run();
      }, ms);
    flight.job = member.engine.submit(flight.request, {
      firstToken: () => {
        if (flight.attempt !== attempt) return;
        flight.hasToken = true;
        member.pendingTokens -= flight.request.promptTokens;
        back(() => this.#firstByte(flight, member));
      },
      finished: () => back(() => this.#finish(flight, member)),
      failed: () => back(() => this.#fail(flight, member), 0),
    });
    if (flight.job === undefined) back(() => this.#fail(flight, member), 0);
  }

  #firstByte(flight: Flight, member: Member): void {
    flight.firstByteAt = this.#queue.now;
    this.#host.firstByte(flight);
    if (!this.#scenario.traffic[flight.request.tenant]?.streaming) return;
    flight.lease?.started();
    this.#readInBand(member);
    this.#pump();
  }

  #finish(flight: Flight, member: Member): void {
    const { outputTokens, tenant } = flight.request;
    flight.lease?.release({ outputTokens });
    this.#leaveMember(flight, member);
    member.completed++;
    flight.state = "completed";
    flight.endedAt = this.#queue.now;
    if (!this.#scenario.traffic[tenant]?.streaming) this.#readInBand(member);
    this.#host.ended(flight);
    this.#pump();
  }

  /** Its endpoint failed it: it is tried elsewhere, unless a byte of the answer was there. */
  #fail(flight: Flight, member: Member): void {
    flight.lease?.release({ failed: true });
    flight.lease = undefined;
    flight.job = undefined;
    this.#leaveMember(flight, member);
    member.failed++;
    flight.failedOn.add(member.id);
    const mayRetry =
      Number.isNaN(flight.firstByteAt) && flight.failedOn.size <= this.#scenario.retries;
    if (mayRetry) this.#place(flight);
    else this.#host.rejected(flight, "endpoint-failed");
    this.#pump();
  }

  #leaveMember(flight: Flight, member: Member): void {
    member.inFlight--;
    if (!flight.hasToken) member.pendingTokens -= flight.request.promptTokens;
    flight.member = undefined;
  }

  #startScraping(member: Member): void {
    const { interval, latency, loss, phase } = this.#scenario.scrape;
    const read = () => {
      this.#queue.after(interval, read);
      // One draw per reading, whatever comes of it.
      const isLost = this.#wires.next() < loss;
      const reading = this.pool.beginReading(member.id);
      if (isLost || member.faults["scrape-outage"] > 0) return;
      this.#queue.after(latency / 2, () => {
        const sample = sampleOf(member);
        if (sample === undefined) return;
        this.#queue.after(latency / 2, () => {
          reading.report(sample);
          this.#pump();
        });
      });
    };
    // The first reading comes at once, as a router waits for it before it is ready.
    const sample = sampleOf(member);
    if (sample !== undefined && member.faults["scrape-outage"] === 0)
      this.pool.report(member.id, sample);
    this.#queue.at(phase === "aligned" ? interval : this.#wires.next() * interval, read);
  }

  /** The answer's header carries the engine's load. */
  #readInBand(member: Member): void {
    if (!this.#scenario.inBand) return;
    const sample = sampleOf(member);
    if (sample !== undefined) this.pool.report(member.id, sample);
  }

  #travel(run: () => void, moreMs = 0): void {
    this.#queue.after(this.#scenario.network + moreMs, run);
  }
}

/** What an engine's page says, as a sample. */
function sampleOf({ engine, spec }: Member) {
  const gauges = engine.readGauges();
  if (gauges === undefined) return undefined;
  return {
    waitingQueueSize: gauges.waiting,
    runningRequests: gauges.running,
    kvCacheUsagePercent: gauges.kv,
    kvCapacityTokens: spec.model.kvBlocks * spec.model.blockSize,
  };
}
