import type { StepDetail } from '../../../../../src/contracts/run-step.ts';

export interface StepTabProps {
  readonly runId: string;
  readonly step: StepDetail;
}
