/** A port that throws has met a mistake of the mocks: it is told, and the run does not go on from there. */
import type { Unit } from '../core/run/drive.ts';
import type { UnitPorts } from './unit-ports.ts';

export function guardPorts(
  { executeStep, escalateStep, resumeStep, giveUpStep }: UnitPorts,
  onFault: (error: unknown) => void,
): UnitPorts {
  const safe =
    <Rest extends readonly unknown[], Result>(port: (unit: Unit, ...rest: Rest) => Promise<Result>) =>
    (unit: Unit, ...rest: Rest): Promise<Result> =>
      port(unit, ...rest).catch((error: unknown) => {
        onFault(error);
        return new Promise<Result>(() => undefined);
      });
  return {
    executeStep: safe(executeStep),
    escalateStep: safe(escalateStep),
    resumeStep: safe(resumeStep),
    giveUpStep: safe(giveUpStep),
  };
}
