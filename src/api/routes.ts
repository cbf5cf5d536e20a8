import { type ConsoleFiles, consoleRoutes } from './console.ts';
import { docsRoutes, documentRoutes } from './documents/docs.ts';
import type { ApiConfig } from './limits.ts';
import type { Route } from './route.ts';
import { accessRoutes, auditRoutes } from './routes/access.ts';
import { anthropicRoutes } from './routes/anthropic.ts';
import { callbackRoutes } from './routes/callbacks.ts';
import { cacheRoutes, callRoutes } from './routes/calls.ts';
import { capabilityRoutes, publisherRoutes } from './routes/capabilities.ts';
import { escalationRoutes } from './routes/escalation.ts';
import { runEventRoutes, streamRoutes } from './routes/events.ts';
import { hookRoutes } from './routes/hooks.ts';
import { hostRoutes } from './routes/hosts.ts';
import { jobRoutes, uploadRoutes } from './routes/jobs.ts';
import { mcpRoutes } from './routes/mcp.ts';
import { mediaRoutes } from './routes/media.ts';
import { moneyRoutes } from './routes/money.ts';
import { aliasRoutes, openAiRoutes } from './routes/openai.ts';
import { outsideEventRoutes } from './routes/outside-events.ts';
import { graphRoutes, pipelineRoutes, planRoutes } from './routes/pipelines.ts';
import { responseRoutes } from './routes/responses.ts';
import { reviewRoutes } from './routes/reviews.ts';
import { runControlRoutes } from './routes/run-control.ts';
import { runPictureRoutes, runRoutes } from './routes/runs.ts';
import { scheduleRoutes } from './routes/schedules.ts';
import { secretRoutes } from './routes/secrets.ts';
import { serviceRoutes } from './routes/service.ts';
import { sessionAdminRoutes, sessionRoutes } from './routes/sessions.ts';
import { signInRoutes } from './routes/sign-in.ts';
import { skillRoutes } from './routes/skills.ts';
import { webhookRoutes } from './routes/webhooks.ts';

/** What outside programs start and send. */
const fromOutside: readonly Route[] = [...hookRoutes, ...outsideEventRoutes];

/** Instances, with who publishes their names and which hosts they share. */
const registryRoutes: readonly Route[] = [...capabilityRoutes, ...publisherRoutes, ...hostRoutes];

/** Every route of the API. All except the pages for people are in the OpenAPI document. */
export function createRoutes(config: ApiConfig, console?: ConsoleFiles): readonly Route[] {
  const documented = [
    ...registryRoutes,
    ...callRoutes,
    ...callbackRoutes,
    ...openAiRoutes,
    ...aliasRoutes,
    ...mcpRoutes,
    ...responseRoutes,
    ...anthropicRoutes,
    ...pipelineRoutes,
    ...graphRoutes,
    ...planRoutes,
    ...jobRoutes,
    ...mediaRoutes,
    ...uploadRoutes,
    ...runRoutes,
    ...runPictureRoutes,
    ...runControlRoutes,
    ...runEventRoutes,
    ...cacheRoutes,
    ...streamRoutes,
    ...scheduleRoutes,
    ...escalationRoutes,
    ...reviewRoutes,
    ...skillRoutes,
    ...moneyRoutes,
    ...sessionRoutes,
    ...signInRoutes,
    ...sessionAdminRoutes,
    ...accessRoutes,
    ...auditRoutes,
    ...webhookRoutes,
    ...fromOutside,
    ...secretRoutes,
    ...serviceRoutes,
  ];
  return [...documented, ...documentRoutes(documented, config), ...docsRoutes(), ...consoleRoutes(console)];
}
