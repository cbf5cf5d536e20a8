/** The runs that are timed, and how often; both sides run the same ones. */
export interface Shape {
  readonly name: string;
  readonly kind: 'sequential' | 'parallel';
  readonly steps: number;
}

export const latencyShapes: readonly Shape[] = [
  { name: '3 in sequence', kind: 'sequential', steps: 3 },
  { name: '10 in sequence', kind: 'sequential', steps: 10 },
  { name: '40 in sequence', kind: 'sequential', steps: 40 },
  { name: '20 in parallel', kind: 'parallel', steps: 20 },
  { name: '100 in parallel', kind: 'parallel', steps: 100 },
];

export const loadShape: Shape = { name: 'three-step runs', kind: 'sequential', steps: 3 };

/** What every step is given besides a number: about the size of a real small input. */
export const payloadText = 'x'.repeat(200);

export const pipelineName = ({ kind, steps }: Shape): string => `bench-${kind}-${steps}`;

export interface Effort {
  readonly rounds: number;
  /** Runs of one shape in a row, one at a time. */
  readonly runsPerShape: (shape: Shape) => number;
  readonly inFlight: number;
  /** Runs of one round under load. */
  readonly loadRuns: number;
}

export const fullEffort: Effort = {
  rounds: 9,
  runsPerShape: ({ steps }) => Math.max(2, Math.round(24 / steps)),
  inFlight: 32,
  loadRuns: 256,
};

export const quickEffort: Effort = {
  rounds: 3,
  runsPerShape: ({ steps }) => Math.max(1, Math.round(12 / steps)),
  inFlight: 32,
  loadRuns: 128,
};
