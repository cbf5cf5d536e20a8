/** What the API works with: every use case, wired once by the composition root. */
import type { AccessService } from './access/access-service.ts';
import type { AuditService } from './access/audit-service.ts';
import type { SignInService } from './access/sign-in.ts';
import type { CacheService } from './cache/cache-service.ts';
import type { CallService } from './calls/call-service.ts';
import type { ErasureService } from './erasure/erasure-service.ts';
import type { EscalationService } from './escalation/escalation-service.ts';
import type { HealthService } from './health-service.ts';
import type { MoneyService } from './money/money-service.ts';
import type { PlanService } from './plans/plan-service.ts';
import type { PublisherService } from './registry/publisher-service.ts';
import type { RegistryService } from './registry/registry-service.ts';
import type { InputChecks } from './reviews/input.ts';
import type { ReviewService } from './reviews/review-service.ts';
import type { DecisionService } from './routing/decisions.ts';
import type { SkillService } from './skills/skill-service.ts';
import type { WebhookService } from './webhooks/webhook-service.ts';

export interface Services {
  readonly access: AccessService;
  readonly erasures: ErasureService;
  /** Null: no provider is configured. */
  readonly signIn: SignInService | null;
  readonly audit: AuditService;
  readonly registry: Pick<RegistryService, 'register' | 'heartbeat' | 'deregister' | 'list' | 'get'>;
  readonly publishers: PublisherService;
  readonly calls: Pick<CallService, 'exec'>;
  readonly decisions: DecisionService;
  readonly inputChecks: InputChecks;
  readonly plans: PlanService;
  readonly cache: CacheService;
  readonly escalations: Pick<EscalationService, 'create' | 'get' | 'execute' | 'advise'>;
  readonly reviews: ReviewService;
  readonly skills: SkillService;
  readonly webhooks: WebhookService;
  readonly money: MoneyService;
  readonly health: HealthService;
}
