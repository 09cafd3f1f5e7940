// What a translation has to say: faults, which make the file no config at all, and notes, which name what does
// not map. Both by path; lines are looked up at the end.

import { type ConfigFault, describeValue } from "../../errors";
import { nearestKey } from "../../nearest";
import { isObject } from "./document";

/** Something that does not map, or maps to something else. */
export interface EppNote {
  /** Keys joined by dots, as in a fault. */
  readonly path: string;
  readonly text: string;
}

/** Collects what is found. */
export class Findings {
  readonly faults: ConfigFault[] = [];
  readonly notes: EppNote[] = [];

  /** Adds a fault. */
  fault(path: string, value: unknown, rule: string): void {
    this.faults.push({ path, value, rule });
  }

  /** Adds a note. */
  note(path: string, text: string): void {
    this.notes.push({ path, text });
  }

  /** An object, or a fault; undefined where there is none. */
  object(value: unknown, path: string): Record<string, unknown> | undefined {
    if (value === undefined || value === null) return undefined;
    if (isObject(value)) return value;
    this.fault(path, value, "must be an object");
    return undefined;
  }

  /** A list, or a fault; empty where there is none. */
  list(value: unknown, path: string): readonly unknown[] {
    if (value === undefined || value === null) return [];
    if (Array.isArray(value)) return value;
    this.fault(path, value, "must be a list");
    return [];
  }

  /** A text that is not empty, or a fault; undefined where there is none. */
  text(value: unknown, path: string): string | undefined {
    if (value === undefined || value === null) return undefined;
    if (typeof value === "string" && value !== "") return value;
    this.fault(path, value, "must be a text");
    return undefined;
  }

  /**
   * Keys that nobody has heard of: near a known one it is a slip of the pen, which the EPP refuses too; any other
   * may be of a version that is not known here.
   */
  strangers(value: Record<string, unknown>, path: string, known: readonly string[]): void {
    for (const [key, found] of Object.entries(value)) {
      if (known.includes(key)) continue;
      const at = path === "" ? key : `${path}.${key}`;
      const near = nearestKey(key, known);
      if (near === undefined) this.note(at, "is not known here, and does not map");
      else this.fault(at, found, `unknown option; did you mean ${describeValue(near)}?`);
    }
  }
}
