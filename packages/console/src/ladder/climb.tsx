import { Link } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { ValueDiff } from '../diff/value-diff.tsx';
import { formatDuration, formatExact, formatUsd } from '../shared/format.ts';
import { Icon } from '../shared/icon.tsx';
import { Button, linkClass } from '../shared/parts.tsx';
import type { Tone } from '../shared/state.ts';
import { toneFill } from '../shared/state.ts';
import { type ClimbStep, rungs } from './climb-model.ts';

const tones: Readonly<Record<ClimbStep['kind'], Tone>> = {
  tried: 'failed',
  advised: 'person',
  corrected: 'done',
  asked: 'person',
  waited: 'waiting',
};

/** Levels from the bottom up to a person, time to the right; each move with its error, its words or its changes. */
export function Climb({ steps }: { readonly steps: readonly ClimbStep[] }): ReactElement {
  const [chosen, setShown] = useState<number | null>(null); // null: the last one, also when another follows
  const shown = chosen ?? steps.length;
  const next = shown + 1 < steps.length ? shown + 1 : null;
  const visible = steps.slice(0, shown);
  return (
    <div className="flex flex-col gap-3">
      <Rungs steps={visible} width={steps.length} />
      <div className="flex items-center gap-2">
        <Button look="bare" onClick={() => setShown(Math.max(1, shown - 1))} disabled={shown <= 1}>
          Back
        </Button>
        <Button look="bare" icon="play" onClick={() => setShown(shown >= steps.length ? 1 : next)}>
          {shown >= steps.length ? 'From the start' : 'Next move'}
        </Button>
        <span className="figure text-xs text-muted">
          {Math.min(shown, steps.length)} of {steps.length}
        </span>
      </div>
      <ol className="flex flex-col gap-2">
        {visible.map((step, index) => (
          <li key={index} className="rounded-md border border-line p-3 text-sm">
            <p className="flex flex-wrap items-center gap-x-2">
              <span className={`size-2 rounded-full ${toneFill[tones[step.kind]]}`} />
              <span className="min-w-0 font-medium wrap-anywhere">{step.title}</span>
              <span className="text-xs text-muted">{step.place}</span>
            </p>
            <Figures step={step} />
            {step.question === '' ? null : (
              <p className="mt-1 line-clamp-3 break-words text-xs text-muted">Asked about: {step.question}</p>
            )}
            {step.text === '' ? null : (
              <p className="mt-1 whitespace-pre-wrap break-words text-muted">{step.text}</p>
            )}
            {step.change === null ? null : (
              <ValueDiff before={step.change.before} after={step.change.after} />
            )}
          </li>
        ))}
      </ol>
    </div>
  );
}

/** When, how long, for how much. */
function Figures({ step: { at, tookMs, costUsd, runId } }: { readonly step: ClimbStep }): ReactElement {
  return (
    <p className="figure flex flex-wrap gap-x-3 text-xs text-muted empty:hidden">
      {at === null ? null : <span>{formatExact(new Date(at).toISOString())}</span>}
      {tookMs === null ? null : <span>{formatDuration(tookMs)}</span>}
      {costUsd === null ? null : <span>{formatUsd(costUsd)}</span>}
      {runId === undefined ? null : (
        <Link to="/runs/$runId" params={{ runId }} className={linkClass}>
          run …{runId.slice(-8)}
        </Link>
      )}
    </p>
  );
}

const rungHeight = 22;
const left = 120;

function Rungs({
  steps,
  width,
}: {
  readonly steps: readonly ClimbStep[];
  readonly width: number;
}): ReactElement {
  const gap = 260 / Math.max(1, width);
  const yOf = (level: number): number => (5 - level) * rungHeight + rungHeight / 2;
  const points = steps.map(({ level }, index) => `${left + gap * (index + 0.5)},${yOf(level)}`).join(' ');
  return (
    <svg
      viewBox={`0 0 400 ${6 * rungHeight}`}
      className="w-full max-w-xl"
      role="img"
      aria-label={`A climb of ${steps.length} moves`}
    >
      {rungs.map((name, level) => (
        <g key={name}>
          <line x1={left - 8} x2="398" y1={yOf(level)} y2={yOf(level)} className="stroke-line" />
          <text x="0" y={yOf(level) + 4} className="fill-muted text-[11px]">
            {level} {name}
          </text>
        </g>
      ))}
      <polyline points={points} fill="none" className="stroke-line-strong" strokeWidth="1.5" />
      {steps.map(({ level, kind }, index) => (
        <circle
          key={index}
          cx={left + gap * (index + 0.5)}
          cy={yOf(level)}
          r="5"
          className={dotFill[tones[kind]]}
        />
      ))}
    </svg>
  );
}

const dotFill: Readonly<Record<Tone, string>> = {
  running: 'fill-running',
  done: 'fill-done',
  failed: 'fill-failed',
  waiting: 'fill-waiting',
  person: 'fill-person',
  quiet: 'fill-quiet',
};

export function NoClimb(): ReactElement {
  return (
    <p className="flex gap-2 text-sm text-muted">
      <Icon name="info" className="mt-0.5" />
      No input was rejected. When one is, rules, skills, models and at last a person try to correct it, and
      each move shows here.
    </p>
  );
}
