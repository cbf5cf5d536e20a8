import type { RunCondition } from '@capstan/core/run/run-status';
import type { ReactElement } from 'react';
import { Icon } from './icon.tsx';
import { conditionLooks, lookOf, type StateLook, toneSoft, toneText } from './state.ts';

export interface LookMarkProps {
  readonly look: StateLook;
  readonly isFilled?: boolean;
}

/** The icon and word of a state, in its colour. */
export function LookMark({ look: { icon, word, tone }, isFilled = false }: LookMarkProps): ReactElement {
  const shape = isFilled ? `rounded-full px-2 py-0.5 ${toneSoft[tone]}` : '';
  return (
    <span
      className={`inline-flex items-center gap-1.5 whitespace-nowrap text-sm font-medium ${toneText[tone]} ${shape}`}
    >
      <Icon name={icon} size={15} className={icon === 'loader-circle' ? 'turning' : ''} />
      {word}
    </span>
  );
}

export interface StateMarkProps {
  readonly state: string;
  readonly isFilled?: boolean;
}

export function StateMark({ state, isFilled = false }: StateMarkProps): ReactElement {
  return <LookMark look={lookOf(state)} isFilled={isFilled} />;
}

export interface ConditionMarkProps {
  readonly condition: Pick<RunCondition, 'kind' | 'title'>;
  readonly isFilled?: boolean;
}

export function ConditionMark({
  condition: { kind, title },
  isFilled = false,
}: ConditionMarkProps): ReactElement {
  return <LookMark look={{ ...conditionLooks[kind], word: title }} isFilled={isFilled} />;
}
