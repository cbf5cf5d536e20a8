/** What one watcher is shown of a round. */
import type { StreamFrame, StreamTopic } from '../../contracts/stream.ts';
import { type Caller, isOperator } from '../access/caller.ts';
import { toRunEvent } from '../runs/event-feed.ts';
import { writePosition } from './stream-position.ts';
import type { NewEvents, StreamRound } from './stream-round.ts';

export interface StreamView {
  readonly caller: Caller;
  readonly topics: ReadonlySet<StreamTopic>;
  /** The number of the last event that was told, by run. */
  readonly seqs: Map<string, number>;
}

/** Frames that belong together: who has had them all stands at `id`. */
export interface StreamBatch {
  readonly id: string;
  readonly frames: readonly StreamFrame[];
}

const topicOf = { run: 'runs', review: 'reviews', instance: 'instances', budget: 'budgets' } as const;

function isShown({ caller, topics }: StreamView, frame: StreamFrame): boolean {
  if (frame.kind === 'step' || frame.kind === 'reset') return true;
  if (frame.kind === 'budget' && frame.data.scope === 'global' && !isOperator(caller)) return false;
  return topics.has(topicOf[frame.kind]);
}

function toStepFrames({ seqs }: StreamView, events: NewEvents): readonly StreamFrame[] {
  return events
    .filter(({ run_id }) => seqs.has(run_id))
    .map((row) => {
      const seq = (seqs.get(row.run_id) ?? 0) + 1;
      seqs.set(row.run_id, seq);
      return { kind: 'step', data: toRunEvent({ ...row, seq }) };
    });
}

/** The events first: what they led to is told after them. */
export function selectFrames(
  view: StreamView,
  events: NewEvents,
  standing: readonly StreamFrame[],
): readonly StreamFrame[] {
  return [...toStepFrames(view, events), ...standing.filter((frame) => isShown(view, frame))];
}

export function toBatch(
  view: StreamView,
  { events, instances, ofProject, position }: StreamRound,
): StreamBatch {
  const standing = [...(ofProject.get(view.caller.project_id) ?? []), ...instances];
  return { id: writePosition(position), frames: selectFrames(view, events, standing) };
}
