import type { ConformanceCase } from '../case.ts';
import { cacheCases } from './cache-cases.ts';
import { callCases } from './call-cases.ts';
import { combinedCases } from './combined-cases.ts';
import { escalationCases } from './escalation-cases.ts';
import { eventCases } from './event-cases.ts';
import { fanOutCases } from './fan-out-cases.ts';
import { kindCases } from './kind-cases.ts';
import { orderCases } from './order-cases.ts';
import { pipelineCases } from './pipeline-cases.ts';
import { raceCases } from './race-cases.ts';
import { repeatCases } from './repeat-cases.ts';

export const allCases: readonly ConformanceCase[] = [
  ...pipelineCases,
  ...kindCases,
  ...eventCases,
  ...orderCases,
  ...fanOutCases,
  ...repeatCases,
  ...raceCases,
  ...callCases,
  ...cacheCases,
  ...escalationCases,
  ...combinedCases,
];
