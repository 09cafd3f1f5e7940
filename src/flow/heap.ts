// A binary heap that can remove from anywhere: each item is told its place, and gives it back.

/** Least first. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #isLess: (a: T, b: T) => boolean;
  readonly #setPlace: (item: T, place: number) => void;

  /** @param setPlace keeps an item's place for `remove`; -1 once it is out. */
  constructor(isLess: (a: T, b: T) => boolean, setPlace: (item: T, place: number) => void) {
    this.#isLess = isLess;
    this.#setPlace = setPlace;
  }

  get size(): number {
    return this.#items.length;
  }

  /** The least item. */
  get first(): T | undefined {
    return this.#items[0];
  }

  add(item: T): void {
    this.#items.push(item);
    this.#rise(this.#items.length - 1);
  }

  /** Removes the item at a place that `setPlace` was told. */
  remove(place: number): void {
    const last = this.#items.length - 1;
    this.#swap(place, last);
    const item = this.#items.pop();
    if (item !== undefined) this.#setPlace(item, -1);
    if (place === last) return;
    this.#rise(place);
    this.#sink(place);
  }

  #rise(from: number): void {
    let place = from;
    for (; place > 0; place = (place - 1) >> 1) {
      const parent = (place - 1) >> 1;
      if (!this.#isLess(this.#at(place), this.#at(parent))) break;
      this.#swap(place, parent);
    }
    this.#setPlace(this.#at(place), place);
  }

  #sink(from: number): void {
    const size = this.#items.length;
    for (let place = from; ; ) {
      let least = place;
      for (const child of [2 * place + 1, 2 * place + 2]) {
        if (child < size && this.#isLess(this.#at(child), this.#at(least))) least = child;
      }
      if (least === place) return;
      this.#swap(place, least);
      place = least;
    }
  }

  #swap(a: number, b: number): void {
    const [first, second] = [this.#at(a), this.#at(b)];
    this.#items[a] = second;
    this.#items[b] = first;
    this.#setPlace(second, a);
    this.#setPlace(first, b);
  }

  #at(place: number): T {
    return this.#items[place] as T; // callers stay below the size
  }
}
