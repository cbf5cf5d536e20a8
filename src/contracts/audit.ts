/** What was done to things that outlive a run, and by whom. Entries are added, never changed. */
import { z } from 'zod';
import { Instant, JsonObject, ListQuery, listOf } from './primitives.ts';

export const AuditEntry = z
  .strictObject({
    entry_id: z.string(),
    at: Instant,
    /** A key, a person (`user:…`), an escalation, or a part of Capstan. */
    actor: z.string(),
    /** `skill.retired` */
    action: z.string(),
    /** Id of what it was done to. */
    subject: z.string(),
    data: JsonObject,
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof AuditEntry>;
export const AuditList = listOf(AuditEntry).meta({ id: 'AuditList' });

export const AuditQuery = ListQuery.extend({
  subject: z
    .string()
    .regex(/^[!-~]{1,128}$/, { error: 'an id has 1 to 128 visible ASCII characters' })
    .optional(),
  from: Instant.optional().meta({ description: 'From this moment on.' }),
  to: Instant.optional().meta({ description: 'Up to, and without, this moment.' }),
}).strict();
export type AuditQuery = z.infer<typeof AuditQuery>;
