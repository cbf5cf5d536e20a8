/** `project.yaml` of a folder that `capstan apply` and `capstan pull` read and write, beside its `pipelines/`. */
import { z } from 'zod';
import { HookSettings } from './hook.ts';
import { AliasName, ModelAliasRequest } from './model-alias.ts';
import { CallScope, ScopedBudgetRequest } from './money.ts';
import { PipelineName, Usd, VersionText } from './primitives.ts';
import { notBoth } from './rules.ts';
import { ScheduleRequest } from './schedule.ts';
import { WebhookRequest } from './webhook.ts';

const oneChoice = notBoth('alias', 'version');

const { name: _, paused, ...scheduleFields } = ScheduleRequest.shape;

const DeclaredSchedule = z
  .strictObject({
    ...scheduleFields,
    paused: paused.unwrap().optional().meta({ description: 'Absent: as people set it by hand.' }),
  })
  .check(oneChoice.check)
  .meta({ id: 'DeclaredSchedule', ...oneChoice.schema });

const { enabled, ...hookFields } = HookSettings.shape;

const DeclaredHook = z
  .strictObject({
    ...hookFields,
    enabled: enabled.unwrap().optional().meta({ description: 'Absent: as people set it by hand.' }),
    secret: z
      .string()
      .regex(/^\$\{[A-Za-z_][A-Za-z0-9_]*\}$/, {
        error:
          'a secret is not written into the file; name a variable of the environment after $ and in braces',
      })
      .optional()
      .meta({ description: 'The variable with the secret of the sender, used when the hook is created.' }),
  })
  .check(oneChoice.check)
  .meta({ id: 'DeclaredHook', ...oneChoice.schema });

const { period: _period, ...limitFields } = ScopedBudgetRequest.shape;
const DeclaredLimit = z.strictObject(limitFields).meta({ id: 'DeclaredLimit' });

const DeclaredBudgets = z
  .strictObject({
    daily_limit_usd: Usd.optional().meta({ description: 'Of the whole project; 0 is no limit.' }),
    scoped: z
      .record(
        CallScope,
        z.strictObject({
          day: DeclaredLimit.optional(),
          month: DeclaredLimit.optional(),
          total: DeclaredLimit.optional(),
        }),
      )
      .optional()
      .meta({ description: 'By scope, such as `label:team=ads`, and by period.' }),
  })
  .meta({ id: 'DeclaredBudgets' });

const DeclaredWebhook = z
  .strictObject({
    url: z.string().min(1).max(2_048).meta({
      description: 'It may name variables of the environment, after $ and in braces.',
    }),
    events: WebhookRequest.shape.events,
  })
  .meta({ id: 'DeclaredWebhook' });

const AliasOfVersion = PipelineName.refine((name) => name !== 'latest', {
  error: 'latest is maintained by Capstan: the version that was stored last',
});

/** A section that is absent is not managed. An empty one has no members. */
export const ProjectFile = z
  .strictObject({
    pipeline_aliases: z.record(PipelineName, z.record(AliasOfVersion, VersionText)).optional().meta({
      description: 'Names for versions, by pipeline: `trailer: { production: "1.4" }`.',
    }),
    model_aliases: z.record(AliasName, ModelAliasRequest.shape.capability).optional().meta({
      description: 'Other names for models: `gpt-4o: model.capable`.',
    }),
    schedules: z.record(PipelineName, DeclaredSchedule).optional(),
    hooks: z.record(PipelineName, DeclaredHook).optional(),
    budgets: DeclaredBudgets.optional(),
    webhooks: z.array(DeclaredWebhook).optional(),
  })
  .meta({ id: 'ProjectFile', description: 'The file `project.yaml` of `capstan apply`.' });
export type ProjectFile = z.infer<typeof ProjectFile>;
