/**
 * Checks by schemas that tenants wrote, in a process that serves others meanwhile. A turn of the event loop compiles
 * one light schema at most, and checks for some milliseconds. Schemas that are not light are compiled in a thread
 * alone, and a check that takes longer continues there. Where it is made changes no verdict: both count the same work.
 */
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { findSchemaFault, isLightSchema } from '../foreign-schema.ts';
import type { SchemaFinding } from '../repair/candidate.ts';
import { proposeRepairs, type Repairs } from '../repair/propose-repairs.ts';
import type { FormatUse } from './formats.ts';
import {
  type CheckWork,
  type CompiledSchema,
  createSchemaCompiler,
  SchemaRefused,
  tooMuchWork,
} from './schema-compiler.ts';
import type { SchemaError } from './schema-errors.ts';
import {
  type CheckAnswers,
  type CheckInThread,
  type CheckQuestion,
  createSchemaThread,
  LimitReached,
  type ThreadLimits,
} from './schema-threads.ts';

/** At once where little work is enough. */
type Awaitable<Value> = Value | Promise<Value>;

/** The faults of a value; empty when it is valid. */
export interface ForeignCheck {
  /** @throws SchemaRefused */
  (value: Json): Awaitable<readonly SchemaError[]>;
  /** The faults of every branch of a union, with their keywords, for a repair. @throws SchemaRefused */
  readonly find: (value: Json) => Awaitable<readonly SchemaFinding[]>;
  /** What could be changed to make it valid. @throws SchemaRefused */
  readonly repair: (value: Json) => Awaitable<Repairs>;
}

export interface ForeignChecks {
  /** @throws SchemaRefused */
  of(schema: JsonObject, formats?: FormatUse): ForeignCheck;
  close(): Promise<void>;
}

/** Of all checks in one turn of the event loop: about 10 ms. Compiling a light schema is charged with all of them. */
const unitsOfTurn = 2_000_000;
/** Processor time for compiling a schema twice, and for a check that takes all the work that is allowed. */
const usualLimits: ThreadLimits = { timeLimitMs: 10_000, heapLimitMb: 256 };

interface TurnWork {
  /** What checks may do in this turn. */
  readonly work: CheckWork;
  /** After a use: soon begins again, when much is used. */
  readonly noteUse: () => void;
  /** Resolves when it has begun again; null when it will not, because little is used. */
  readonly next: () => Promise<void> | null;
}

function createTurnWork(): TurnWork {
  const work: CheckWork = { left: unitsOfTurn };
  let next: Promise<void> | null = null;
  const begin = (): void => {
    work.left = unitsOfTurn;
    next = null;
  };
  return {
    work,
    noteUse: () => {
      if (work.left <= unitsOfTurn / 2) next ??= setImmediate().then(begin);
    },
    next: () => next,
  };
}

type CheckFinding = CheckAnswers[CheckQuestion];

const unanswered: CheckAnswers = {
  errors: [tooMuchWork],
  findings: [{ keyword: '', params: {}, ...tooMuchWork }],
  repairs: { proposals: [], applicable: null },
};

/** @throws SchemaRefused */
type CheckRemotely = (request: CheckInThread) => Promise<CheckFinding>;

/** Makes checks in a thread. */
function createRemoteChecks(limits: ThreadLimits) {
  const thread = createSchemaThread(limits);

  /** Memory may be short because of what others left in the thread; a new one has nothing of them. */
  const askTwice = async (request: CheckInThread) => {
    try {
      return await thread.ask(request);
    } catch (error) {
      if (error instanceof LimitReached && error.kind === 'memory') return thread.ask(request);
      throw error;
    }
  };

  const check: CheckRemotely = async (request) => {
    try {
      const { refused, found = unanswered[request.asked] } = await askTwice(request);
      if (refused !== null) throw new SchemaRefused(refused);
      return found;
    } catch (error) {
      if (error instanceof LimitReached) return unanswered[request.asked];
      throw error;
    }
  };
  return { check, close: thread.close };
}

interface CheckSubject {
  readonly schema: JsonObject;
  readonly formats: FormatUse;
}

const compiler = createSchemaCompiler();

/** @returns null when the work does not suffice */
function repairWithin(
  schema: JsonObject,
  { findings }: CompiledSchema['within'],
  { value, work }: { readonly value: Json; readonly work: CheckWork },
): Repairs | null {
  let isUsedUp = false;
  const errorsOf = (input: Json): readonly SchemaFinding[] => {
    const found = isUsedUp ? null : findings(input, work);
    isUsedUp = found === null;
    return found ?? unanswered.findings;
  };
  const repairs = proposeRepairs({ schema, input: value, errorsOf });
  return isUsedUp ? null : repairs;
}

/** In this turn; null when its work is used up. */
type LocalCheck = (asked: CheckQuestion, value: Json) => CheckFinding | null;

function createLocalCheck({ schema, formats }: CheckSubject, { work, noteUse }: TurnWork): LocalCheck {
  let compiled: CompiledSchema | null = null;
  return (asked, value) => {
    if (work.left <= 0) return null;
    const isNew = compiled === null;
    compiled ??= compiler.compile(schema, formats);
    const { within } = compiled;
    const found =
      asked === 'repairs' ? repairWithin(schema, within, { value, work }) : within[asked](value, work);
    if (isNew) work.left -= unitsOfTurn;
    noteUse();
    return found;
  };
}

type FindForeign = (asked: CheckQuestion, value: Json) => Awaitable<CheckFinding>;

/** @param check in the thread */
function createFinder(subject: CheckSubject, turn: TurnWork, check: CheckRemotely): FindForeign {
  const local = isLightSchema(subject.schema) ? createLocalCheck(subject, turn) : null;
  let name: string | null = null;

  const askThread = (asked: CheckQuestion, value: Json): Promise<CheckFinding> => {
    name ??= createHash('sha256').update(JSON.stringify(subject)).digest('base64');
    return check({ kind: 'check', name, ...subject, asked, value });
  };

  /** In the first turn in which there is enough work left; when a whole turn is not enough, in the thread. */
  const findLater = async (here: LocalCheck, asked: CheckQuestion, value: Json): Promise<CheckFinding> => {
    for (let hadWholeTurn = false; !hadWholeTurn; ) {
      await turn.next();
      hadWholeTurn = turn.work.left === unitsOfTurn;
      const found = here(asked, value);
      if (found !== null) return found;
    }
    return askThread(asked, value);
  };

  return (asked, value) => {
    if (local === null) return askThread(asked, value);
    return local(asked, value) ?? findLater(local, asked, value);
  };
}

export function createForeignChecks(limits: Partial<ThreadLimits> = {}): ForeignChecks {
  const remote = createRemoteChecks({ ...usualLimits, ...limits });
  const turn = createTurnWork();
  return {
    of: (schema, formats = 'asserted') => {
      const fault = findSchemaFault(schema);
      if (fault !== null) throw new SchemaRefused(fault);
      const find = createFinder({ schema, formats }, turn, remote.check);
      const check = (value: Json) => find('errors', value);
      return Object.assign(check, {
        find: (value: Json) => find('findings', value),
        repair: (value: Json) => find('repairs', value),
      }) as ForeignCheck;
    },
    close: remote.close,
  };
}
