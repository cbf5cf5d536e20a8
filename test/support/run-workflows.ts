/** A stub of Temporal for tests of messages to it: it knows no workflow unless a test adds one. */
import type { RunWorkflows } from '../../src/clients/temporal/run-workflows.ts';

export function fakeWorkflows(known: Partial<RunWorkflows> = {}): RunWorkflows {
  return {
    start: async () => undefined,
    cancel: async () => 'gone',
    terminate: async () => 'gone',
    signalControl: async () => 'gone',
    signalWoken: async () => 'gone',
    listClosed: async function* () {},
    listRunning: async function* () {},
    listRunningLadders: async function* () {},
    isForgotten: async () => false,
    isOpen: async () => false,
    findTaskFault: async () => null,
    erase: async () => true,
    eraseLadder: async () => true,
    eraseStart: async () => true,
    eraseSchedule: async () => true,
    eraseProject: async () => true,
    startEscalation: async () => undefined,
    signalReviewed: async () => 'gone',
    hasSearchAttributes: async () => false,
    isReachable: async () => true,
    ...known,
  };
}
