import type { ReactElement } from 'react';
import { Climb, NoClimb } from '../../../ladder/climb.tsx';
import { toClimb } from '../../../ladder/climb-model.ts';
import type { StepTabProps } from './step-tab-props.ts';

export function LadderTab({ step }: StepTabProps): ReactElement {
  const climb = toClimb(step);
  return climb.length === 0 ? <NoClimb /> : <Climb steps={climb} />;
}
