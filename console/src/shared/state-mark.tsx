import type { ReactElement } from 'react';
import { Icon } from './icon.tsx';
import { lookOf, toneSoft, toneText } from './state.ts';

/** Icon and word of a state, in its colour. */
export function StateMark({ state, isFilled = false }: StateMarkProps): ReactElement {
  const { icon, word, tone } = lookOf(state);
  const shape = isFilled ? `rounded-full px-2 py-0.5 ${toneSoft[tone]}` : '';
  return (
    <span
      className={`inline-flex items-center gap-1.5 whitespace-nowrap text-sm font-medium ${toneText[tone]} ${shape}`}
    >
      <Icon name={icon} size={15} className={state === 'running' ? 'turning' : ''} />
      {word}
    </span>
  );
}

export interface StateMarkProps {
  readonly state: string;
  readonly isFilled?: boolean;
}
