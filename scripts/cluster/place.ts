import type { Report } from '../../src/dev/progress.ts';
import type { ChildSpec } from '../../src/dev/supervisor/child-process.ts';
import type { Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import type { ClusterPorts } from './ports.ts';

/** Where the parts of a cluster are started. */
export interface ClusterPlace {
  readonly folder: string;
  readonly ports: ClusterPorts;
  /** How many of each are started. */
  readonly servers: number;
  readonly workers: number;
  readonly supervisor: Supervisor;
  readonly report: Report;
  /** Starts a part and reports it. */
  readonly start: (spec: ChildSpec) => Promise<void>;
}
