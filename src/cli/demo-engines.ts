// The engines of `serve --demo`: six in three speeds, half of them vLLM and half SGLang, cut down to what a
// laptop can fill.

import { type EngineModel, PRESETS } from "../sim/presets";
import { Random } from "../sim/random";
import { DemoEngine, type DemoEngineName, type DemoEngineSpec } from "./demo-engine";
import { LiveTime } from "./demo-time";

/** Engines that run. */
export interface DemoEngines {
  readonly engines: readonly DemoEngine[];
  close(): Promise<void>;
}

const NAMES: readonly DemoEngineName[] = ["vllm", "sglang"];
const GPUS = ["H100", "A100", "L4"];
/** A small batch and a small cache, so that a few dozen requests fill them. */
const SMALL = { maxNumSeqs: 8, kvBlocks: 260 };

function specs(): DemoEngineSpec[] {
  return GPUS.flatMap((gpu) =>
    NAMES.map((name) => {
      const preset = PRESETS[`llama-3.1-8b/${gpu}/tp1`] as EngineModel; // there is one for each
      return { name, gpu, model: { ...preset, ...SMALL } };
    }),
  );
}

/** Starts them on free ports. */
export async function startDemoEngines(seed: number): Promise<DemoEngines> {
  const time = new LiveTime();
  const engines = await Promise.all(
    specs().map((spec, i) => DemoEngine.open(time, spec, new Random(seed, `engine ${i}`))),
  );
  return {
    engines,
    close: async () => {
      time.close();
      await Promise.all(engines.map((engine) => engine.close()));
    },
  };
}
