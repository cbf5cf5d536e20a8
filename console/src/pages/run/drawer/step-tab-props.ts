import type { StepDetail } from '../../../../../src/contracts/run.ts';

export interface StepTabProps {
  readonly runId: string;
  readonly step: StepDetail;
}
