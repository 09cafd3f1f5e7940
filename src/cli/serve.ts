// plimsoll serve: the router as a process. It reads its config, listens, and obeys signals: SIGHUP reads the
// config again, SIGTERM and SIGINT let requests end, a second one does not.

import { createRouter, type Router } from "../router/router";
import type { FileConfig } from "./config-file";

/** What the command line asked for. */
export interface ServeOptions {
  readonly config: FileConfig;
  /** Reads everything anew, for SIGHUP. Rejects, with words for people, when there is a fault. */
  readAgain(): Promise<FileConfig>;
  readonly warn: (text: string) => void;
}

const STOP_SIGNALS = ["SIGTERM", "SIGINT"] as const;

/** Runs until it is told to stop. Resolves to the exit code. */
export async function serve({ config, readAgain, warn }: ServeOptions): Promise<number> {
  const router = createRouter(config.value, {
    logger: { warn },
    environment: process.env,
  });
  const { traffic, admin } = await router.start();
  process.stdout.write(`requests  ${traffic}\n`);
  if (admin !== undefined) process.stdout.write(`admin     ${admin}\n`);
  describe(router);
  let settings = config;
  const reload = async () => {
    try {
      const next = await readAgain();
      await router.reload(next.value);
      settings = next;
      process.stdout.write("reloaded\n");
      describe(router);
    } catch (error) {
      warn(`not reloaded: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  // One after the other, however fast the signals come.
  let reloading = Promise.resolve();
  const onHangUp = () => {
    reloading = reloading.then(reload);
  };
  process.on("SIGHUP", onHangUp);
  try {
    await stopped(router, () => settings.settings.timeouts.drain);
    return 0;
  } finally {
    process.off("SIGHUP", onHangUp);
  }
}

function describe({ pool }: Router): void {
  const ids = [...pool].map(({ id }) => id);
  process.stdout.write(`endpoints ${ids.length === 0 ? "none yet" : ids.join(" ")}\n`);
}

/** Resolves when a signal has come and the router has stopped. */
function stopped(router: Router, drainMs: () => number): Promise<void> {
  return new Promise((resolve, reject) => {
    let signals = 0;
    const onSignal = () => {
      signals++;
      const drain = signals === 1 ? drainMs() : 0;
      const { live } = router.snapshot();
      process.stdout.write(
        signals === 1 ? `stopping: ${live} requests may end\n` : `stopping now: ${live} are cut\n`,
      );
      const closed = router.close({ drain });
      if (signals > 1) return;
      closed
        .finally(() => {
          for (const name of STOP_SIGNALS) process.off(name, onSignal);
        })
        .then(resolve, reject);
    };
    for (const name of STOP_SIGNALS) process.on(name, onSignal);
  });
}
