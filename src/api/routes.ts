import type { ServerCtx } from '../services/context.ts';
import { type ConsoleFiles, consoleRoutes } from './console.ts';
import { docsRoutes, documentRoutes } from './docs.ts';
import type { ApiConfig } from './limits.ts';
import type { Route } from './route.ts';
import { accessRoutes, auditRoutes } from './routes/access.ts';
import { cacheRoutes, callRoutes } from './routes/calls.ts';
import { capabilityRoutes } from './routes/capabilities.ts';
import { escalationRoutes } from './routes/escalation.ts';
import { runEventRoutes, streamRoutes } from './routes/events.ts';
import { jobRoutes, uploadRoutes } from './routes/jobs.ts';
import { mediaRoutes } from './routes/media.ts';
import { moneyRoutes } from './routes/money.ts';
import { openAiRoutes } from './routes/openai.ts';
import { graphRoutes, pipelineRoutes, planRoutes } from './routes/pipelines.ts';
import { reviewRoutes } from './routes/reviews.ts';
import { runControlRoutes } from './routes/run-control.ts';
import { runPictureRoutes, runRoutes } from './routes/runs.ts';
import { scheduleRoutes } from './routes/schedules.ts';
import { serviceRoutes } from './routes/service.ts';
import { sessionAdminRoutes, sessionRoutes } from './routes/sessions.ts';
import { signInRoutes } from './routes/sign-in.ts';
import { skillRoutes } from './routes/skills.ts';
import { webhookRoutes } from './routes/webhooks.ts';

/** Every route of the API. All except the pages for people are in the OpenAPI document. */
export function createRoutes(
  ctx: ServerCtx,
  options: { config: ApiConfig; closing: AbortSignal; console?: ConsoleFiles | undefined },
): Route[] {
  const documented = [
    ...capabilityRoutes(ctx),
    ...callRoutes(ctx),
    ...openAiRoutes(ctx),
    ...pipelineRoutes(ctx),
    ...graphRoutes(ctx),
    ...planRoutes(ctx, options.config),
    ...jobRoutes(ctx),
    ...mediaRoutes(ctx, options.config),
    ...uploadRoutes(ctx),
    ...runRoutes(ctx, options.config),
    ...runPictureRoutes(ctx),
    ...runControlRoutes(ctx),
    ...runEventRoutes(ctx),
    ...cacheRoutes(ctx),
    ...streamRoutes(ctx),
    ...scheduleRoutes(ctx),
    ...escalationRoutes(ctx),
    ...reviewRoutes(ctx),
    ...skillRoutes(ctx),
    ...moneyRoutes(ctx),
    ...sessionRoutes(ctx, options.config),
    ...signInRoutes(ctx, options.config),
    ...sessionAdminRoutes(ctx),
    ...accessRoutes(ctx),
    ...auditRoutes(ctx),
    ...webhookRoutes(ctx),
    ...serviceRoutes(ctx, options),
  ];
  return [
    ...documented,
    ...documentRoutes(documented, options.config),
    ...docsRoutes(),
    ...consoleRoutes(options.console),
  ];
}
