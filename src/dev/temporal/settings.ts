import { searchAttributes } from '../../core/workflow-payloads/search-attributes.ts';

/** Of any Temporal server that runs for Capstan alone. The stock settings protect a cluster that many share. */
export const ownServerSettings = {
  // The stock 20 polls a second cost 75 to 100 ms for every step.
  'history.transferProcessorMaxPollRPS': 1_000,
  'history.timerProcessorMaxPollRPS': 1_000,
  'system.enableActivityEagerExecution': true,
  // Priorities and fairness between projects.
  'matching.useNewMatcher': true,
  'matching.enableFairness': true,
  // By the stock settings each node keeps the last 128,000 workflows in memory, tens of kilobytes each.
  'history.cacheTTL': '"5m"',
  'history.cacheBackgroundEvict': '{"Enabled":true}',
  // Nobody to be protected from by a rate.
  'frontend.rps': 100_000,
  'frontend.namespaceRPS': 100_000,
  'frontend.namespaceRPS.visibility': 1_000,
  'frontend.namespaceCount': 10_000,
  'history.rps': 100_000,
  'matching.rps': 100_000,
} as const;

/** What the embedded one is told besides. */
const dynamicConfig = {
  ...ownServerSettings,
  // Timers of a second at the least otherwise.
  'history.timerProcessorMaxTimeShift': '"10ms"',
  // Strict order of priorities needs one partition.
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
} as const;

export interface TemporalPorts {
  readonly port: number;
  readonly uiPort: number;
}

function pairs(flag: string, values: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(values).flatMap(([name, value]) => [flag, `${name}=${value}`]);
}

export function serverArguments(
  { port, uiPort }: TemporalPorts,
  { databaseFile, ephemeral }: { databaseFile: string; ephemeral: boolean },
): string[] {
  return [
    ...['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port), '--ui-port', String(uiPort)],
    ...['--db-filename', databaseFile, '--log-level', 'error'],
    ...pairs('--sqlite-pragma', { journal_mode: 'wal', ...(ephemeral ? { synchronous: 'off' } : {}) }),
    ...pairs('--search-attribute', searchAttributes),
    ...pairs('--dynamic-config-value', dynamicConfig),
  ];
}
