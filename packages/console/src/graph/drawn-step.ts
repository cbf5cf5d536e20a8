import type { RunGraph } from '@capstan/core/contracts/run-picture';

export type DrawnStep = RunGraph['steps'][number];
export type DrawnEdge = RunGraph['edges'][number];
