/** The plays of faults, as `npm run faults` lists them. All but the first are tests, in a larger size. */
import { type Named, WrongUse } from './named.ts';

export interface FaultTests extends Named {
  readonly files: readonly string[];
  /** The variable by which the tests read their size, which the argument after the name replaces. */
  readonly size: { readonly variable: string; readonly usual: string };
  readonly environment?: Readonly<Record<string, string>>;
}

interface FaultProgram extends Named {
  /** The module plays when it is loaded, and reads its own arguments. */
  readonly load: () => Promise<unknown>;
}

export const faults: Readonly<Record<string, FaultTests | FaultProgram>> = {
  cluster: {
    says: 'nineteen faults in a cluster on this machine; rewrites docs/faults.md; `--only NAME,NAME`, `--long`',
    load: () => import('../faults/play-in-cluster.ts'),
  },
  kills: {
    says: 'kills the server 50 times while keyed calls end; prints duplicate requests and charges',
    files: ['test/e2e/killed-keyed-calls.test.ts'],
    size: { variable: 'KILLS', usual: '50' },
  },
  failover: {
    says: '20 runs each on an instance that is killed, hangs or is slow; prints when the other instance begins',
    files: ['test/e2e/killed-instances.test.ts'],
    size: { variable: 'FAULT_RUNS', usual: '20' },
  },
  inline: {
    says: 'kills and replaces a worker 20 times each during short steps; then every kind of step without a queue',
    files: ['killed-inline', 'killed-engine', 'rolling-restart'].map((name) => `test/e2e/${name}.test.ts`),
    size: { variable: 'KILLS', usual: '20' },
    environment: { DISPATCH: 'inline' },
  },
  migrations: {
    says: 'upgrades to another migration and another function, and back, under 300 runs',
    files: ['test/e2e/rolling-migration.test.ts'],
    size: { variable: 'FAULT_RUNS', usual: '300' },
  },
  scenarios: {
    says: 'the scenarios over four router processes, ten times larger, with their figures',
    files: ['test/scenarios/scenarios.test.ts'],
    size: { variable: 'TIMES', usual: '10' },
  },
  books: {
    says: '1,000 calls of models with every way of counting tokens; prints the books of provider and ledger',
    files: ['test/api/model-books.test.ts'],
    size: { variable: 'EXCHANGES', usual: '1000' },
  },
  streams: {
    says: '500 streams of paid calls under a limit for 100, with the server killed, slow readers and the provider gone; prints figures',
    files: ['test/e2e/paid-streams.test.ts'],
    size: { variable: 'STREAMS', usual: '500' },
  },
  vanished: {
    says: 'cuts a machine off at each stage of 1 and of 30 open calls, as root on Linux; prints the seconds until the next attempt',
    files: ['test/e2e/vanished-machines.test.ts'],
    size: { variable: 'FAULT_CALLS', usual: '1,30' },
  },
};

/** @throws WrongUse for more than one argument, or one that is no number or list of numbers */
export function describeTests({ files, size, environment }: FaultTests, words: readonly string[]) {
  const [given = size.usual] = words;
  if (words.length > 1 || !/^\d+(,\d+)*$/.test(given)) {
    throw new WrongUse(`${words.join(' ')}: at most one argument, a size such as ${size.usual}`);
  }
  return { files, environment: { ...environment, LONG: '1', [size.variable]: given } };
}
