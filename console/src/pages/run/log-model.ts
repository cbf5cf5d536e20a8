/** Lines of a run's log in words. */
import type { RunEvent } from '../../../../src/contracts/event.ts';
import type { Json } from '../../../../src/contracts/primitives.ts';
import { formatDuration, formatUsd } from '../../shared/format.ts';
import type { Tone } from '../../shared/state.ts';

function isRecord(value: Json | undefined): value is Readonly<Record<string, Json>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function describeValue(name: string, value: Json): string | null {
  if (value === null || value === '') return null;
  if (name === 'error' && isRecord(value)) return `${value.code}: ${value.message}`;
  if (name === 'reason') return String(value);
  if (typeof value === 'number' && name === 'cost_usd') return formatUsd(value);
  if (typeof value === 'number' && name === 'duration_ms') return formatDuration(value);
  if (typeof value === 'number' && name.endsWith('_usd'))
    return `${name.slice(0, -4).replaceAll('_', ' ')} ${formatUsd(value)}`;
  if (typeof value === 'number' && name.endsWith('_ms'))
    return `${name.slice(0, -3).replaceAll('_', ' ')} ${formatDuration(value)}`;
  return typeof value === 'object' ? null : `${name.replaceAll('_', ' ')} ${value}`;
}

/** What the line says besides its type. */
export function describeEvent({ data }: RunEvent): string {
  if (!isRecord(data)) return '';
  return Object.entries(data)
    .filter(([name]) => name !== 'attempt_id')
    .map(([name, value]) => describeValue(name, value))
    .filter((text) => text !== null)
    .join(' · ');
}

export function toneOf({ type }: RunEvent): Tone {
  if (type.endsWith('succeeded') || /reused|cached/.test(type)) return 'done';
  if (type.endsWith('failed')) return 'failed';
  if (/retrying|waiting|paused|budget/.test(type)) return 'waiting';
  if (/review|escalated/.test(type)) return 'person';
  return /started|routed|resumed/.test(type) ? 'running' : 'quiet';
}

export function matchesText(event: RunEvent, text: string): boolean {
  if (text === '') return true;
  const words = `${event.type} ${event.step_id ?? ''} ${describeEvent(event)}`.toLowerCase();
  return words.includes(text.toLowerCase());
}
