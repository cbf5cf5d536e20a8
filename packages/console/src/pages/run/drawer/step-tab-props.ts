import type { StepDetail } from '@capstan/core/contracts/run-step';

export interface StepTabProps {
  readonly runId: string;
  readonly step: StepDetail;
}
