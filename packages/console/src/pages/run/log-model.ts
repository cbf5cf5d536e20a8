/** Lines of a run's log in words. */

import { isAtLeast, readStepLog } from '@capstan/core/call/log-lines';
import type { LogLevel, RunEvent } from '@capstan/core/contracts/event';
import type { Json } from '@capstan/core/contracts/primitives';
import type { Awaiting } from '@capstan/core/contracts/run-step';
import { describeDecided } from '@capstan/core/repair/describe-decided';
import { formatClock, formatDuration, formatUsd } from '../../shared/format.ts';
import { awaitingWords, type Tone } from '../../shared/state.ts';

function isRecord(value: Json | undefined): value is Readonly<Record<string, Json>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function describeValue(name: string, value: Json): string | null {
  if (value === null || value === '') return null;
  if (name === 'error' && isRecord(value)) return `${value.code}: ${value.message}`;
  if (name === 'reason') return String(value);
  if (name === 'awaiting' && typeof value === 'string')
    return `for ${awaitingWords[value as Awaiting] ?? value}`;
  if (name === 'until' && typeof value === 'string') return `until ${formatClock(value)}`;
  if (name === 'as_decided') return describeDecided(value);
  if (typeof value === 'number' && name === 'cost_usd') return formatUsd(value);
  if (typeof value === 'number' && name === 'duration_ms') return formatDuration(value);
  if (typeof value === 'number' && name.endsWith('_usd'))
    return `${name.slice(0, -4).replaceAll('_', ' ')} ${formatUsd(value)}`;
  if (typeof value === 'number' && name.endsWith('_ms'))
    return `${name.slice(0, -3).replaceAll('_', ' ')} ${formatDuration(value)}`;
  return typeof value === 'object' ? null : `${name.replaceAll('_', ' ')} ${value}`;
}

/** The content of the line besides its type. */
export function describeEvent(event: RunEvent): string {
  const logged = readStepLog(event);
  if (logged !== null) return logged.message;
  const { data } = event;
  if (!isRecord(data)) return '';
  return Object.entries(data)
    .filter(([name]) => name !== 'attempt_id')
    .map(([name, value]) => describeValue(name, value))
    .filter((text) => text !== null)
    .join(' · ');
}

const levelTones: Readonly<Record<LogLevel, Tone>> = {
  debug: 'quiet',
  info: 'running',
  warn: 'waiting',
  error: 'failed',
};

export function toneOf(event: RunEvent): Tone {
  const logged = readStepLog(event);
  if (logged !== null) return levelTones[logged.level];
  const { type } = event;
  if (type.endsWith('succeeded') || /reused|cached|answered/.test(type)) return 'done';
  if (type.endsWith('failed')) return 'failed';
  if (/retrying|waiting|paused|budget/.test(type)) return 'waiting';
  if (/review|escalated/.test(type)) return 'person';
  return /started|routed|resumed/.test(type) ? 'running' : 'quiet';
}

/** The word before the line: the level of a capability's line, otherwise the event. */
export function nameOf(event: RunEvent): string {
  return readStepLog(event)?.level ?? event.type;
}

/** Everything, only events, or only capabilities' lines from a level on. */
export type LogKind = 'all' | 'events' | LogLevel;

export const logKinds: readonly (readonly [LogKind, string])[] = [
  ['all', 'Everything'],
  ['events', 'What happened'],
  ['debug', 'What capabilities logged'],
  ['info', '… info and graver'],
  ['warn', '… warnings and errors'],
  ['error', '… errors'],
];

export function isOfKind(event: RunEvent, kind: LogKind): boolean {
  if (kind === 'all') return true;
  const logged = readStepLog(event);
  if (kind === 'events' || logged === null) return kind === 'events' && logged === null;
  return isAtLeast(logged.level, kind);
}

/** Lines as text, to copy or download. */
export function toText(events: readonly RunEvent[]): string {
  const lines = events.map((event) => {
    const { at, step_id, item, attempt } = event;
    const place = step_id === undefined ? [] : [`${step_id}${suffixOf({ item, attempt })}`];
    const from = readStepLog(event)?.endpoint;
    const said = [describeEvent(event), ...(from === undefined ? [] : [`(${from})`])].join(' ');
    return [at, nameOf(event).padEnd(14), ...place, said.replaceAll('\n', '\n    ')].join('  ').trimEnd();
  });
  return `${lines.join('\n')}\n`;
}

/** The item of the step, and the attempt: `[2] #1`. */
export function suffixOf({ item, attempt }: Pick<RunEvent, 'item' | 'attempt'>): string {
  return `${item === undefined ? '' : `[${item}]`}${attempt === undefined ? '' : ` #${attempt}`}`;
}

export function matchesText(event: RunEvent, text: string): boolean {
  if (text === '') return true;
  const words = `${event.type} ${nameOf(event)} ${event.step_id ?? ''} ${describeEvent(event)}`.toLowerCase();
  return words.includes(text.toLowerCase());
}
