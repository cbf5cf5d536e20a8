/** The types of what expressions may name, for each place of a definition. */
import type { Path } from '../../expression/ast.ts';
import { runFields } from '../../expression/roots.ts';
import { typeOfFields } from '../../schema-types/json-value-type.ts';
import { createObjectType } from '../../schema-types/object-type.ts';
import type { PathStart } from '../../schema-types/typed-value.ts';
import {
  absent,
  anyType,
  aType,
  enumType,
  integerType,
  kinds,
  numberType,
  stringType,
  type ValueType,
} from '../../schema-types/value-type.ts';

export interface TypeScope {
  readonly job: ValueType;
  /** The outputs of the steps known by then. */
  readonly outputs: ReadonlyMap<string, ValueType>;
  /** Why the output of a step may be missing here; undefined = it is there. */
  readonly whyMissing: (stepId: string) => string | undefined;
  /** Null outside the input of a step with `for_each`. */
  readonly item: ValueType | null;
}

/** Null for what has its own finding already. */
export function startOf(path: Path, scope: TypeScope): PathStart | null {
  switch (path.root) {
    case 'job':
      return { type: scope.job, missing: 'no', length: 0 };
    case 'run':
      return isKnownField(path.segments[0]) ? { type: runType, missing: 'no', length: 0 } : null;
    case 'item':
      return scope.item === null ? null : { type: scope.item, missing: 'no', length: 0 };
    case 'index':
      return scope.item === null ? null : { type: integerType, missing: 'no', length: 0 };
    case 'steps':
      return startOfStep(path, scope);
    default:
      return null;
  }
}

function isKnownField(name: unknown): boolean {
  return runFields.some((field) => field === name);
}

function startOfStep({ segments: [id, field] }: Path, scope: TypeScope): PathStart | null {
  const output = typeof id === 'string' ? scope.outputs.get(id) : undefined;
  if (typeof id !== 'string' || output === undefined) return null;
  switch (field) {
    case 'output': {
      const reason = scope.whyMissing(id);
      return { type: output, missing: reason === undefined ? 'no' : 'maybe', length: 2, reason };
    }
    case 'status':
      return { type: statusType, missing: 'no', length: 2 };
    case 'cost_usd':
      return { type: numberType, missing: 'no', length: 2 };
    case 'error':
      return { type: errorType, missing: 'maybe', length: 2, reason: 'only a step that failed has one' };
    default:
      return null;
  }
}

const runType = typeOfFields(
  new Map(runFields.map((field) => [field, () => (field === 'attempt' ? integerType : stringType)])),
);

/** How a step can have ended when another one asks. */
const statusType = enumType(['succeeded', 'reused', 'failed', 'unknown', 'skipped', 'cancelled']);

const errorType: ValueType = aType({
  kinds: kinds.object,
  object: createObjectType({
    names: () => ['code', 'message', 'details'],
    required: new Set(['code', 'message']),
    named: (name) =>
      name === 'details' ? { type: anyType, presence: 'maybe' } : { type: stringType, presence: 'certain' },
    other: () => absent,
    isDescribed: true,
  }),
});
