/** Temporal's Web UI view of a history: each event with its summary and its readable content. */

import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { temporal } from '@temporalio/proto';

type History = temporal.api.history.v1.IHistory;

interface RecordedPayload {
  readonly data?: string;
}

/** An event of a recorded history, with the fields that are read here. */
interface RecordedEvent {
  readonly eventType: string;
  readonly userMetadata?: { readonly summary?: RecordedPayload; readonly details?: RecordedPayload };
  readonly markerRecordedEventAttributes?: {
    readonly details: {
      readonly data: { readonly payloads: readonly RecordedPayload[] };
      readonly result?: { readonly payloads: readonly RecordedPayload[] };
    };
  };
  readonly activityTaskScheduledEventAttributes?: { readonly activityType: { readonly name: string } };
  readonly startChildWorkflowExecutionInitiatedEventAttributes?: { readonly searchAttributes?: Indexed };
  readonly workflowExecutionStartedEventAttributes?: { readonly searchAttributes?: Indexed };
  readonly upsertWorkflowSearchAttributesEventAttributes?: { readonly searchAttributes?: Indexed };
}

interface Indexed {
  readonly indexedFields?: Readonly<Record<string, RecordedPayload>>;
}

export interface ShownEvent {
  /** `TIMER_STARTED`, …; of a local activity `MARKER_RECORDED`. */
  readonly type: string;
  /** Type of the activity, queued or local. */
  readonly activity?: string;
  readonly summary?: string;
  readonly details?: string;
  /** The result of a local activity. */
  readonly result?: unknown;
  readonly searchAttributes?: Readonly<Record<string, unknown>>;
}

function read(payload: RecordedPayload | undefined): unknown {
  if (payload?.data === undefined) return undefined;
  return JSON.parse(Buffer.from(payload.data, 'base64').toString() || 'null');
}

function activityOf(event: RecordedEvent): string | undefined {
  const [local] = event.markerRecordedEventAttributes?.details.data.payloads ?? [];
  const known = read(local) as { readonly activity_type: string } | undefined;
  return known?.activity_type ?? event.activityTaskScheduledEventAttributes?.activityType.name;
}

function show(event: RecordedEvent): ShownEvent {
  const fields =
    event.workflowExecutionStartedEventAttributes?.searchAttributes?.indexedFields ??
    event.upsertWorkflowSearchAttributesEventAttributes?.searchAttributes?.indexedFields ??
    event.startChildWorkflowExecutionInitiatedEventAttributes?.searchAttributes?.indexedFields;
  const shown = {
    type: event.eventType.replace('EVENT_TYPE_', ''),
    activity: activityOf(event),
    summary: read(event.userMetadata?.summary) as string | undefined,
    details: read(event.userMetadata?.details) as string | undefined,
    result: read(event.markerRecordedEventAttributes?.details.result?.payloads[0]),
    searchAttributes:
      fields && Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, read(value)])),
  };
  return Object.fromEntries(
    Object.entries(shown).filter(([, value]) => value !== undefined),
  ) as unknown as ShownEvent;
}

/** @param recorded in the form of test/histories */
export function showRecorded(recorded: { readonly events: readonly object[] }): ShownEvent[] {
  return recorded.events.map((event) => show(event as RecordedEvent));
}

export function showHistory(history: History): ShownEvent[] {
  return showRecorded(JSON.parse(historyToJSON(history)));
}
