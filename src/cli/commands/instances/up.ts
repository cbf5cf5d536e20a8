/** `capstan up`: all capabilities of a box from one file, until Ctrl-C. */
import { defaultCacheDir } from '@capstan/capability/lifecycle/start-instance';
import { type Box, type BoxEvent, createBox, readBoxSettings } from '../../../box/box.ts';
import { type FleetFaults, type FleetPlan, readFleetPlan } from '../../../box/fleet-plan.ts';
import type { BoxState } from '../../../box/kept-instance.ts';
import { watchFiles } from '../../../box/watch-files.ts';
import { dataFolder, routerEnvironment } from '../../client/connection.ts';
import { local, parsed, usually } from '../../command.ts';
import { exitCodes, UnreachableError, UsageError } from '../../errors.ts';
import { collectText } from '../../input/arguments.ts';
import { countFindings, renderFindings } from '../../render/findings.ts';
import { type Colour, createPrinter, type Printer } from '../../render/print.ts';
import { type Shell, stackSignal, untilAborted } from '../../shell.ts';
import { remarkNeeds } from './capability.ts';

// What a box reports, as lines.

const nameColours: readonly Colour[] = ['cyan', 'green', 'blue', 'yellow'];

const marks: Readonly<Record<BoxState, readonly [mark: string, colour: Colour, word: string]>> = {
  starting: ['·', 'dim', 'starting'],
  ready: ['✓', 'green', 'ready'],
  registered: ['✓', 'green', 'registered:'],
  unregistered: ['!', 'yellow', 'not registered:'],
  restarting: ['!', 'yellow', ''],
  crash_loop: ['!', 'red', 'crash loop:'],
  finished: ['·', 'dim', 'finished:'],
  gave_up: ['✗', 'red', 'gave up:'],
  stopping: ['·', 'dim', 'stopping'],
  stopped: ['·', 'dim', 'stopped'],
};

/** @returns writes each event: as JSON, or under the name of its instance */
function createWriter({ style, line }: Printer, names: readonly string[], json: boolean) {
  const width = Math.max(...names.map((name) => name.length), 'wraps'.length);
  const colours = new Map(names.map((name, index) => [name, nameColours[index % nameColours.length]]));
  const describe = (event: BoxEvent): string => {
    const name = style[colours.get(event.name) ?? 'dim'](event.name.padEnd(width));
    if ('line' in event) return `${name} | ${event.line}`;
    const [mark, colour, word] = marks[event.state];
    return `${name} ${style[colour](`${mark} ${[word, event.detail].filter(Boolean).join(' ')}`)}`;
  };
  return (event: BoxEvent): void => {
    line(json ? JSON.stringify({ time: new Date().toISOString(), ...event }) : describe(event));
  };
}

function showFaults(faults: readonly FleetFaults[], print: Printer): void {
  for (const { name, shown, findings } of faults) {
    renderFindings(findings, { name, text: shown, type: 'application/yaml' }, print).forEach(print.remark);
    print.remark(`${name}: ${countFindings(findings)}`);
  }
}

interface FleetGiven {
  readonly file: string;
  readonly only: readonly string[];
}

/** Copies have the name of their entry too. @throws UsageError when nothing has the name */
function choose(plan: FleetPlan, only: readonly string[]): FleetPlan {
  if (only.length === 0) return plan;
  const isMeant = (name: string, wanted: string): boolean =>
    name === wanted || name.replace(/-[0-9]+$/, '') === wanted;
  for (const wanted of only) {
    if (plan.instances.some(({ name }) => isMeant(name, wanted))) continue;
    const names = plan.instances.map(({ name }) => name).join(', ');
    throw new UsageError(`--only ${wanted}: the file has ${names}`);
  }
  const instances = plan.instances.filter(({ name }) => only.some((wanted) => isMeant(name, wanted)));
  return { ...plan, instances };
}

/** Shows the faults. @returns null then @throws UsageError when the file cannot be read */
export function readFleet(
  { file, only }: FleetGiven,
  options: { readonly environment: NodeJS.ProcessEnv; readonly checks: boolean },
  print: Printer,
): FleetPlan | null {
  let reading: ReturnType<typeof readFleetPlan>;
  try {
    reading = readFleetPlan({ file, ...options });
  } catch (thrown) {
    throw new UsageError(`${file} cannot be read: ${thrown instanceof Error ? thrown.message : thrown}`);
  }
  if ('plan' in reading) return choose(reading.plan, only);
  showFaults(reading.faults, print);
  return null;
}

interface FleetRun extends FleetGiven {
  readonly plan: FleetPlan;
  readonly environment: NodeJS.ProcessEnv;
  readonly cacheDir: string;
  readonly stateDir: string;
  readonly json: boolean;
}

export interface StartedFleet extends Pick<Box, 'over' | 'stop' | 'kill'> {
  /** Reads the file again. */
  readonly reload: () => void;
  /** Reads it again when it changes, or a file that it names. @returns stops that */
  readonly watch: () => () => Promise<void>;
}

/** @throws Error when an instance cannot be kept; nothing of the fleet runs then */
export async function startFleet(run: FleetRun, print: Printer): Promise<StartedFleet> {
  const { plan, environment, cacheDir, stateDir, json } = run;
  const names = plan.instances.map(({ name }) => name);
  const box = createBox({ environment, cacheDir, stateDir, report: createWriter(print, names, json) });
  let current = plan;
  const onReload = new Set<() => void>();
  const reload = async (): Promise<void> => {
    try {
      const changed = readFleet(run, { environment, checks: false }, print);
      if (changed === null) return print.remark(`${run.file} has errors; everything runs as before`);
      current = changed;
      await box.change(changed);
    } catch (thrown) {
      print.remark(`${thrown instanceof Error ? thrown.message : thrown}; everything runs as before`);
    } finally {
      for (const act of onReload) act();
    }
  };
  const watch = () => {
    const open = () => watchFiles(current.files, () => void reload());
    let close = open();
    const renew = (): void => {
      void close();
      close = open();
    };
    onReload.add(renew);
    return () => {
      onReload.delete(renew);
      return close();
    };
  };
  try {
    await box.change(plan);
  } catch (thrown) {
    await box.stop();
    throw thrown;
  }
  return { over: box.over, stop: box.stop, kill: box.kill, reload: () => void reload(), watch };
}

interface UpGiven {
  readonly file: string;
  readonly only: readonly string[] | undefined;
  readonly data: string | undefined;
  readonly register: boolean | undefined;
  readonly watch: boolean;
  readonly json: boolean;
  readonly cacheDir: string;
  readonly stateDir: string;
}

/** @throws UnreachableError when no Capstan is known */
async function findEnvironment(
  { data, register }: UpGiven,
  { environment }: Shell,
): Promise<NodeJS.ProcessEnv> {
  const found = await routerEnvironment(environment, register === true, data);
  if (register !== true || found.ROUTER_URL) return found;
  const folder = dataFolder(data, environment);
  throw new UnreachableError(
    `no Capstan runs from ${folder}; start one with \`capstan dev\`, set ROUTER_URL and ROUTER_TOKEN, or only serve with --no-register`,
  );
}

/** @throws UsageError when the settings are invalid */
async function requireSettings(environment: NodeJS.ProcessEnv, plan: FleetPlan): Promise<void> {
  try {
    await readBoxSettings(environment, plan);
  } catch (thrown) {
    throw new UsageError(thrown instanceof Error ? thrown.message : String(thrown));
  }
}

async function runUp(given: UpGiven, shell: Shell): Promise<void> {
  const print = createPrinter(shell);
  const { file, only = [], ...options } = given;
  const environment = await findEnvironment(given, shell);
  const plan = readFleet({ file, only }, { environment, checks: false }, print);
  if (plan === null) return shell.exitWith(exitCodes.failed);
  await requireSettings(environment, plan);
  let fleet: StartedFleet | undefined;
  // A terminal that is closed sends SIGHUP too.
  const onHangup = { onHangup: () => fleet?.reload() };
  const signal = stackSignal({
    onForce: () => fleet?.kill(),
    ...(shell.stdout.isTTY === true ? {} : onHangup),
  });
  fleet = await startFleet({ ...options, file, only, plan, environment }, print);
  const unwatch = given.watch ? fleet.watch() : null;
  const isRight = await Promise.race([fleet.over, untilAborted(signal).then(() => true)]);
  if (!signal.aborted) print.remark('nothing is left to keep running');
  await unwatch?.();
  await fleet.stop();
  // Open connections would keep this process.
  process.exit(isRight ? exitCodes.ok : exitCodes.failed);
}

/** `capstan up`: starts, watches and registers everything that the file names. */
export const registerUpCommand = local('up', {
  about:
    'start all capabilities of this machine from one file and register them, until Ctrl-C; restarts instances that end',
  example: 'capstan up fleet.yaml --watch',
  args: { '[file]': usually('the file, see docs/up.md', 'fleet.yaml') },
  options: {
    '--check': usually(
      'only check the file, and the files that it names; exits 1 when there are errors',
      false,
    ),
    '--only <name>': parsed('start only this one (repeatable)', collectText),
    '-w, --watch': usually('apply changes of the file, and of the wrap files that it names', false),
    '--json': usually('print a JSON object for each line and each change of a state', false),
    '--data <dir>': 'folder of the running stack (default: CAPSTAN_DATA, else .capstan)',
    '--no-register': 'only serve',
    '--cache-dir <dir>': usually('where packages and prerequisites are installed', defaultCacheDir),
    '--state-dir <dir>': usually('where jobs of providers are kept by Idempotency-Key', '.capstan/wrap'),
  },
  run: async ({ check, ...given }, shell) => {
    if (!check) return runUp(given, shell);
    const print = createPrinter(shell);
    const { file, only = [] } = given;
    const plan = readFleet({ file, only }, { environment: shell.environment, checks: true }, print);
    if (plan === null) return shell.exitWith(exitCodes.failed);
    await remarkNeeds(plan, print);
    print.line(`${print.style.green('✓ valid')}  ${plan.instances.map(({ name }) => name).join(', ')}`);
  },
});
