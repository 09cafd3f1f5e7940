// Plays a run: a cursor that moves over its steps, by itself or by hand.

/** How long a run takes to play at the speed of 1, in ms. */
const PLAY_MS = 15_000;

/** The controls of playing. */
export class Player {
  readonly #button: HTMLButtonElement;
  readonly #slider: HTMLInputElement;
  readonly #speed: HTMLSelectElement;
  readonly #clock: HTMLOutputElement;
  readonly #show: (step: number) => void;
  #stepMs = 1;
  #startedAt = 0;
  #startedFrom = 0;
  #frame = 0;

  constructor(
    elements: {
      button: HTMLButtonElement;
      slider: HTMLInputElement;
      speed: HTMLSelectElement;
      clock: HTMLOutputElement;
    },
    show: (step: number) => void,
  ) {
    this.#button = elements.button;
    this.#slider = elements.slider;
    this.#speed = elements.speed;
    this.#clock = elements.clock;
    this.#show = show;
    this.#button.addEventListener("click", () => (this.#frame === 0 ? this.play() : this.pause()));
    this.#slider.addEventListener("input", () => {
      this.pause();
      this.#moveTo(Number(this.#slider.value));
    });
    // Another speed goes on from where the run is.
    this.#speed.addEventListener("change", () => {
      if (this.#frame === 0) return;
      this.pause();
      this.play();
    });
  }

  /** Another run: so many steps of so many ms. */
  load(steps: number, stepMs: number): void {
    this.pause();
    this.#stepMs = stepMs;
    this.#slider.max = String(Math.max(0, steps - 1));
    this.#slider.disabled = steps === 0;
    this.#button.disabled = steps === 0;
    this.#moveTo(0);
  }

  /** Plays from where it is, or from the start when it is at the end. */
  play(): void {
    const last = Number(this.#slider.max);
    if (last === 0) return;
    this.#startedFrom = Number(this.#slider.value) >= last ? 0 : Number(this.#slider.value);
    this.#startedAt = performance.now();
    this.#button.textContent = "Pause";
    const stepsPerMs = (last / PLAY_MS) * Number(this.#speed.value);
    const draw = (now: number) => {
      const step = this.#startedFrom + Math.floor((now - this.#startedAt) * stepsPerMs);
      this.#moveTo(Math.min(last, Math.max(0, step)));
      if (step >= last) this.pause();
      else this.#frame = requestAnimationFrame(draw);
    };
    this.#frame = requestAnimationFrame(draw);
  }

  pause(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#button.textContent = "Play";
  }

  #moveTo(step: number): void {
    this.#slider.value = String(step);
    const seconds = this.#slider.disabled ? 0 : ((step + 1) * this.#stepMs) / 1000;
    this.#clock.value = `${seconds.toFixed(1)} s`;
    this.#slider.setAttribute("aria-valuetext", this.#clock.value);
    this.#show(step);
  }
}
