/** What the last rounds have shown, kept beside the script; the page is made of it. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { FaultName } from './table.ts';
import type { Verdict } from './verdict.ts';

export const faultFiguresFile = 'scripts/faults/figures.json';

export interface PlayedFault extends Verdict {
  readonly at: string;
  readonly size: 'short' | 'long';
  readonly seconds: number;
}

export interface FaultFigures {
  readonly machine: string;
  readonly faults: Readonly<Partial<Record<FaultName, PlayedFault>>>;
}

export function pathOfFaultFigures(): string {
  return fileURLToPath(new URL(`../../${faultFiguresFile}`, import.meta.url));
}

/** @throws Error where it cannot be read */
export function readFaultFigures(file = pathOfFaultFigures()): FaultFigures {
  return JSON.parse(readFileSync(file, 'utf8')) as FaultFigures;
}
