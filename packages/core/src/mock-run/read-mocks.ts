/**
 * Reads the text of a mocks file into the mocks, or into all its faults, with line and column.
 *
 * Also finds the keys that a contract knows at a place in a document, for "did you mean".
 */
import type { z } from 'zod';
import type { CostModel } from '../contracts/capability.ts';
import { findTakesFault } from '../contracts/host.ts';
import type { Finding } from '../contracts/pipeline-answers.ts';
import { createFindingPlacer, type UnplacedFinding } from '../definitions/findings.ts';
import { readJson } from '../definitions/source/read-json.ts';
import { readYaml } from '../definitions/source/read-yaml.ts';
import { detectFormat } from '../definitions/source/source-node.ts';
import { extendPointer } from '../json/values.ts';
import { findCostFaults } from '../money/cost-expressions.ts';
import { createNameSuggester, describeUnknownKey } from '../nearest-name.ts';
import { createSchemaCompiler, SchemaRefused } from '../schemas/schema-compiler.ts';
import { compileReplies } from './mock-fleet.ts';
import { type MockCapability, Mocks } from './mocks.ts';

interface MocksReading {
  /** null when a finding is an error. */
  readonly mocks: Mocks | null;
  readonly findings: Finding[];
}

export function readMocks(text: string, contentType: string | null): MocksReading {
  const { root, problems, warnings } =
    detectFormat(text, contentType) === 'json' ? readJson(text) : readYaml(text);
  const place = createFindingPlacer(text, root);
  const found = problems.map((problem): UnplacedFinding => ({ severity: 'error', ...problem }));
  if (root === null || found.length > 0) return { mocks: null, findings: place(found) };
  const parsed = Mocks.safeParse(root.value ?? {});
  const findings = parsed.success ? findFaults(parsed.data) : parsed.error.issues.flatMap(toFindings);
  const told = warnings.map((problem): UnplacedFinding => ({ severity: 'warning', ...problem }));
  return {
    mocks: parsed.success && findings.length === 0 ? parsed.data : null,
    findings: place([...told, ...findings]),
  };
}

type Issue = z.core.$ZodIssue;

function problem(
  pointer: string,
  fault: Pick<UnplacedFinding, 'code' | 'message' | 'suggestion'>,
): UnplacedFinding {
  return { severity: 'error', pointer, ...fault };
}

function toFindings(issue: Issue): UnplacedFinding[] {
  const pointer = extendPointer('', ...issue.path.map(String));
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => unknownKey(issue.path, pointer, key));
  if (issue.code === 'invalid_union')
    return issue.errors
      .flat()
      .slice(0, 1)
      .flatMap((one) => toFindings({ ...one, path: [...issue.path, ...one.path] }));
  if (issue.code === 'invalid_value') {
    const allowed = issue.values.map(String);
    return [problem(pointer, { code: 'value_invalid', message: `expected one of ${allowed.join(', ')}` })];
  }
  return [problem(pointer, { code: 'value_invalid', message: issue.message })];
}

function unknownKey(path: Issue['path'], pointer: string, key: string): UnplacedFinding {
  const known = knownKeys(Mocks, path);
  return problem(extendPointer(pointer, key), {
    code: 'key_unknown',
    message: describeUnknownKey(key, known),
    suggestion: createNameSuggester(known)(key),
  });
}

/** Faults that the contract cannot express: in expressions and schemas. */
function findFaults({ capabilities = {} }: Mocks): UnplacedFinding[] {
  const compiler = createSchemaCompiler();
  return Object.entries(capabilities).flatMap(([name, mock]) => {
    const pointer = extendPointer('/capabilities', name);
    const { errors } = compileReplies(mock.replies ?? [], `${pointer}/replies`);
    const schemas = (['input', 'output'] as const).flatMap((side) => {
      try {
        compiler.compile(mock[side] ?? {});
        return [];
      } catch (error) {
        if (!(error instanceof SchemaRefused)) throw error;
        const message = `no usable JSON Schema: ${error.message}`;
        return [problem(`${pointer}/${side}`, { code: 'schema_invalid', message })];
      }
    });
    const prices = [mock, ...(mock.instances ?? [])].flatMap(({ cost_model }, at) =>
      cost_model === undefined
        ? []
        : findPriceFaults(cost_model, at === 0 ? pointer : `${pointer}/instances/${at - 1}`),
    );
    return [
      ...findTakesFaults(mock, pointer),
      ...prices,
      ...schemas,
      ...errors.map(({ code, pointer: at, offset, message, suggestion }) => ({
        ...problem(at, { code, message, suggestion }),
        offset,
      })),
    ];
  });
}

/** Of its instances, with what they take from the capability. @param pointer of the capability */
function findTakesFaults(
  { instances = [{}], host, takes }: MockCapability,
  pointer: string,
): UnplacedFinding[] {
  return instances.flatMap((own, at) => {
    const fault = findTakesFault({ host: own.host ?? host, takes: own.takes ?? takes });
    const place = own.takes === undefined ? pointer : `${pointer}/instances/${at}`;
    return fault === null
      ? []
      : [problem(`${place}/takes`, { code: 'value_invalid', message: `takes ${fault}` })];
  });
}

/** @param pointer of the capability or instance */
function findPriceFaults(cost_model: CostModel, pointer: string): UnplacedFinding[] {
  return findCostFaults({ cost_model, settle: 'reported' }).map(({ field, message }) =>
    problem(`${pointer}/cost_model/${field}`, { code: 'value_invalid', message }),
  );
}

interface Definition {
  readonly type: string;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly innerType?: z.ZodType;
  readonly element?: z.ZodType;
  readonly valueType?: z.ZodType;
  readonly options?: readonly z.ZodType[];
}

/** Takes keys and list positions from the root; empty for a place that the contract does not know. */
function knownKeys(contract: z.ZodType, path: readonly PropertyKey[]): string[] {
  return [...new Set(branches(contract, path).flatMap(({ shape }) => Object.keys(shape ?? {})))];
}

/** The contracts at the place: several for a union. */
function branches(contract: z.ZodType, path: readonly PropertyKey[]): Definition[] {
  const definition = contract.def as unknown as Definition;
  if (definition.innerType !== undefined) return branches(definition.innerType, path);
  if (definition.options !== undefined) return definition.options.flatMap((one) => branches(one, path));
  const [key, ...rest] = path;
  if (key === undefined) return [definition];
  const next = definition.shape?.[String(key)] ?? definition.element ?? definition.valueType;
  return next === undefined ? [] : branches(next, rest);
}
