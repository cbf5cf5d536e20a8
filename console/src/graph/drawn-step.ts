import type { RunGraph } from '../../../src/contracts/run-picture.ts';

export type DrawnStep = RunGraph['steps'][number];
export type DrawnEdge = RunGraph['edges'][number];
