/** What the API works with: every use case, wired once by the composition root. */
import type { MediaStore } from '../clients/media/media-store.ts';
import type { AccessService } from './access/access-service.ts';
import type { CallService } from './calls/call-service.ts';
import type { HealthService } from './health/health-service.ts';
import type { JobService } from './jobs/job-service.ts';
import type { MoneyService } from './money/money-service.ts';
import type { PipelineService } from './pipelines/pipeline-service.ts';
import type { RegistryService } from './registry/registry-service.ts';
import type { DecisionService } from './routing/decision-service.ts';
import type { RunService } from './runs/run-service.ts';

export interface Services {
  readonly access: AccessService;
  readonly registry: Pick<RegistryService, 'register' | 'heartbeat' | 'deregister' | 'list' | 'get'>;
  readonly calls: Pick<CallService, 'exec'>;
  readonly decisions: DecisionService;
  readonly pipelines: PipelineService;
  readonly jobs: JobService;
  readonly media: MediaStore;
  readonly runs: RunService;
  readonly money: MoneyService;
  readonly health: HealthService;
}
