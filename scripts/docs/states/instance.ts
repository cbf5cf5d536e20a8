/** The states of an instance, from its lifecycle: every event in every state, with all facts that it looks at. */
import {
  afterRegistration,
  type InstanceEvent,
  type InstanceFacts,
  nextState,
  type ProbeFailure,
} from '@capstan/core/fleet/instance-states';
import { drawStates, outside } from './diagram.ts';
import { explore } from './explore.ts';

const detail = '';
const failures: readonly ProbeFailure[] = ['refused', 'unconnected', 'unanswered', 'unhealthy'];
const eventsOf: { readonly [Kind in InstanceEvent['kind']]: readonly InstanceEvent[] } = {
  registered: [{ kind: 'registered' }],
  silent: [{ kind: 'silent' }],
  refused_connection: [{ kind: 'refused_connection' }],
  probe_failed: failures.map((failure) => ({ kind: 'probe_failed', failure, detail })),
  heartbeat: [{ kind: 'heartbeat' }],
  probe_ok: [{ kind: 'probe_ok' }],
  probe_mismatch: [{ kind: 'probe_mismatch', detail }],
  deregistered: [{ kind: 'deregistered' }],
};

type Stored = Pick<InstanceFacts, 'state' | 'reason' | 'failed_probes'>;
type Seen = Omit<InstanceFacts, keyof Stored>;

const seen = [0, 1, 2, 3].map(
  (bits): Seen => ({
    isVetted: (bits & 1) > 0,
    isSilent: (bits & 1) > 0,
    isEvicted: false,
    holdsCalls: (bits & 2) > 0,
  }),
);
const events = Object.values(eventsOf).flatMap((list) =>
  list.flatMap((event) => seen.map((facts) => ({ event, facts }))),
);

export function drawInstance(next: typeof nextState = nextState): string {
  const arrows = explore<Stored, (typeof events)[number], null>({
    starts: [afterRegistration],
    events,
    isOver: () => false,
    next: (stored, { event, facts }) => {
      const { state, failed_probes } = next({ ...stored, ...facts }, event) ?? stored;
      return { state: { state, reason: null, failed_probes: Math.min(failed_probes, 6) }, effect: null };
    },
  }).map(({ before, event, after }) => ({ from: before.state, to: after.state, label: event.event.kind }));
  return drawStates([{ from: outside, to: afterRegistration.state, label: 'registered' }, ...arrows], {
    name: 'known',
    members: ['up', 'suspect', 'down'],
  });
}
