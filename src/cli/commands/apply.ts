/** `apply` brings a project to the files of a folder, and `pull` writes such a folder from the server. */
import { appendFile } from 'node:fs/promises';
import type { Session } from '../client/session.ts';
import { procedure, usually } from '../command.ts';
import { describeError, exitCodes, ProblemError, UsageError } from '../errors.ts';
import { readSource } from '../input/arguments.ts';
import {
  checkDefinitions,
  createResolver,
  type FileFindings,
  hasErrors,
  readFolder,
} from '../project/folder.ts';
import type { MadeSecret } from '../project/kinds.ts';
import { type PlannedChange, planProject } from '../project/plan.ts';
import { pullProject } from '../project/pull.ts';
import { countFindings, renderFindings } from '../render/findings.ts';
import type { Colour, Printer } from '../render/print.ts';
import type { Shell } from '../shell.ts';

const marks: Readonly<Record<PlannedChange['action'], readonly [mark: string, colour: Colour]>> = {
  create: ['+', 'green'],
  change: ['~', 'yellow'],
  delete: ['-', 'red'],
  unchanged: ['=', 'dim'],
};

/** All findings, to stderr. */
export function showFileFindings(found: readonly FileFindings[], print: Printer): void {
  for (const { source, findings } of found) {
    renderFindings(findings, source, print).forEach(print.remark);
    if (findings.length > 0) print.remark(`${source.name}: ${countFindings(findings)}`);
  }
}

/** For programs, under `--json`. */
function printFaults(found: readonly FileFindings[], print: Printer): void {
  const faults = found.flatMap(({ source, findings }) =>
    findings.map((one) => ({ file: source.name, ...one })),
  );
  print.json(JSON.stringify({ changes: [], faults }, null, 2));
}

/** What became of a change. */
type Fate = 'planned' | 'done' | 'failed' | 'not done';

interface ChangeOutcome {
  readonly change: PlannedChange;
  readonly fate: Fate;
}

function shorten(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 100 ? `${text.slice(0, 99)}…` : text;
}

function renderChange({ change, fate }: ChangeOutcome, { style }: Printer): string[] {
  const [mark, colour] = marks[change.action];
  const told = fate === 'planned' || fate === 'done' ? '' : `  ${style.red(fate)}`;
  const head = `${style[colour](`${mark} ${change.kind} ${change.name}`)}${told}`;
  return [
    head,
    ...change.fields.map(({ field, from, to }) => `    ${field}: ${shorten(from)} → ${shorten(to)}`),
  ];
}

const counted = [
  ['create', 'to create', 'created'],
  ['change', 'to change', 'changed'],
  ['delete', 'to delete', 'deleted'],
  ['unchanged', 'unchanged', 'unchanged'],
] as const;

function summarize(outcomes: readonly ChangeOutcome[], isPlan: boolean): string {
  const isCounted = ({ fate }: ChangeOutcome): boolean => isPlan || fate === 'done';
  return counted
    .map(([action, before, after]) => {
      const number = outcomes.filter((one) => one.change.action === action && isCounted(one)).length;
      return `${number} ${isPlan ? before : after}`;
    })
    .join(', ');
}

function show(
  { print, json }: Session,
  outcomes: readonly ChangeOutcome[],
  { isPlan = false, errors = [] as readonly string[] },
): void {
  if (json) {
    const changes = outcomes.map(({ change: { action, kind, name, fields }, fate }) => ({
      action,
      kind,
      name,
      fields,
      fate,
    }));
    print.json(JSON.stringify({ changes, ...(errors.length === 0 ? {} : { errors }) }, null, 2));
    return;
  }
  const shown = outcomes.filter(({ change }) => change.action !== 'unchanged');
  print.lines(shown.flatMap((one) => renderChange(one, print)));
  print.line(summarize(outcomes, isPlan));
}

interface ApplyGiven {
  readonly folder: string;
  readonly dryRun: boolean;
  readonly prune: boolean;
  readonly newSecrets: string | undefined;
}

/**
 * Makes the changes in their order. A refused one leaves those that do not need it; but then nothing is deleted, and
 * without contact nothing more is tried.
 */
async function performAll(session: Session, changes: readonly PlannedChange[], { newSecrets }: ApplyGiven) {
  const outcomes: ChangeOutcome[] = [];
  const failures: unknown[] = [];
  for (const change of changes) {
    const isStopped = failures.some((one) => !(one instanceof ProblemError));
    if (change.action === 'unchanged') outcomes.push({ change, fate: 'done' });
    else if (isStopped || (failures.length > 0 && change.action === 'delete'))
      outcomes.push({ change, fate: 'not done' });
    else {
      try {
        const made = await change.perform(session.client);
        if (made !== null) await keepSecret(newSecrets, change, made);
        outcomes.push({ change, fate: 'done' });
      } catch (thrown) {
        failures.push(thrown);
        outcomes.push({ change, fate: 'failed' });
      }
    }
  }
  return { outcomes, failures };
}

/** One JSON object a line; only its owner reads the file. */
async function keepSecret(file: string | undefined, { kind, name }: PlannedChange, made: MadeSecret) {
  if (file === undefined) return;
  await appendFile(file, `${JSON.stringify({ kind, name, ...made })}\n`, { mode: 0o600 });
}

/** @throws UsageError when a new secret would be lost */
async function requireSecretFile(changes: readonly PlannedChange[], file: string | undefined): Promise<void> {
  const made = changes.filter(({ makesSecret }) => makesSecret).map(({ kind, name }) => `${kind} ${name}`);
  if (made.length === 0) return;
  if (file === undefined) {
    const what = `the server makes a secret for ${made.join(', ')}, and shows it once`;
    throw new UsageError(`${what}; name a file for it with --new-secrets FILE`);
  }
  await appendFile(file, '', { mode: 0o600 }).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`cannot write ${file}: ${error.code}`, { cause: error });
  });
}

async function runApply(session: Session, given: ApplyGiven): Promise<void> {
  const { client, print, shell } = session;
  const { folder, found } = await readFolder(given.folder, shell);
  const fail = (faults: readonly FileFindings[]): void => {
    if (session.json) printFaults(faults, print);
    shell.exitWith(exitCodes.failed);
  };
  if (hasErrors(found)) {
    showFileFindings(found, print);
    return fail(found);
  }
  const resolve = createResolver(shell.environment);
  const plan = await planProject(client, folder, { resolve, prune: given.prune });
  showFileFindings(plan.found, print);
  if (hasErrors(plan.found)) return fail(plan.found);
  const { changes } = plan;
  if (given.dryRun) {
    show(
      session,
      changes.map((change) => ({ change, fate: 'planned' as const })),
      { isPlan: true },
    );
    const isEqual = changes.every(({ action }) => action === 'unchanged');
    return isEqual ? undefined : shell.exitWith(exitCodes.differs);
  }
  await requireSecretFile(changes, given.newSecrets);
  const { outcomes, failures } = await performAll(session, changes, given);
  const reports = failures.map(describeError);
  const lines = reports.flatMap((report) => report.lines);
  show(session, outcomes, { errors: lines });
  if (reports.length === 0) return;
  lines.forEach(print.remark);
  print.remark('when the cause is gone, run it again: it makes up for what is missing');
  shell.exitWith(Math.max(...reports.map(({ exitCode }) => exitCode)));
}

const folderOption = usually('the folder with pipelines/ and project.yaml', '.');

export const registerApplyCommand = procedure('apply', {
  about: 'bring the project to the files of a folder',
  help: `
The plan is checked as a whole before the first change. Exit codes: 0 all is done, or a dry run finds no difference;
1 an error; 2 no contact with Capstan; 5 a dry run finds differences.

Example:
  capstan apply -f project --dry-run --prune`,
  options: {
    '-f, --folder <folder>': folderOption,
    '--dry-run': usually('print the plan and change nothing; exits 5 when there is a difference', false),
    '--prune': usually('delete what the sections of project.yaml do not have', false),
    '--new-secrets <file>': 'append the secrets that the server makes for new hooks and webhooks',
  },
  run: runApply,
});

/** Checks a definition without a server. */
export async function validateFile(file: string, print: Printer, shell: Shell): Promise<void> {
  const { found } = checkDefinitions([await readSource(file, shell.stdin)], {});
  showFileFindings(found, print);
  if (!hasErrors(found)) return print.line(`${print.style.green('✓ valid')}  ${file}`);
  print.line(`${print.style.red('✗ not valid')}  ${file}`);
  shell.exitWith(exitCodes.failed);
}

/** Checks a folder without a server. */
export async function validateFolder(folder: string, print: Printer, shell: Shell): Promise<void> {
  const { folder: read, found } = await readFolder(folder, shell);
  showFileFindings(found, print);
  if (hasErrors(found)) {
    print.line(`${print.style.red('✗ not valid')}  ${folder}`);
    return shell.exitWith(exitCodes.failed);
  }
  const { variables, pipelines, source } = read;
  if (variables.length > 0) print.remark(`to be set in the environment: ${variables.join(', ')}`);
  const number = pipelines.length === 1 ? '1 pipeline' : `${pipelines.length} pipelines`;
  const size = `${number}${source === null ? '' : ', project.yaml'}`;
  print.line(`${print.style.green('✓ valid')}  ${folder}  ${size}`);
}

export const registerPullCommand = procedure('pull', {
  about: 'write the project as files of a folder, as `apply` reads them; never a secret',
  help: `
Files that are alike stay as they are. Variables that project.yaml names stay where their values are those of the
server. Exit codes: 0 the files are written, or a dry run finds no difference; 5 a dry run finds differences.

Example:
  capstan pull -f project`,
  options: {
    '-f, --folder <folder>': folderOption,
    '--dry-run': usually('name the files that would be written; exits 5 when there are any', false),
  },
  run: async (session, { folder, dryRun }) => {
    const { print, json, shell } = session;
    const files = await pullProject(session, folder, dryRun);
    if (json) print.json(JSON.stringify({ files }, null, 2));
    else {
      print.lines(
        files.filter(({ state }) => state !== 'unchanged').map(({ name, state }) => `${state} ${name}`),
      );
      if (files.every(({ state }) => state === 'unchanged')) print.line('no difference');
    }
    if (dryRun && files.some(({ state }) => state !== 'unchanged')) shell.exitWith(exitCodes.differs);
  },
});
