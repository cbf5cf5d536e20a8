import { ListQuery } from '@capstan/core/contracts/primitives';
import {
  Skill,
  SkillCreated,
  SkillList,
  SkillPatch,
  SkillRequest,
  SkillState,
  SkillUseList,
  SkillWorth,
} from '@capstan/core/contracts/skill';
import { z } from 'zod';
import {
  createSkill,
  findSkills,
  patchSkill,
  readSkill,
  readSkillUses,
  readSkillWorth,
  retireSkill,
} from '../../use-cases/skills/skills.ts';
import { json } from '../input.ts';
import { IdPath } from '../parameters.ts';
import { type Route, route } from '../route.ts';

const SkillQuery = z.strictObject({
  job_type: z.string().max(128).optional(),
  signals: z
    .string()
    .max(8_192)
    .optional()
    .meta({ description: 'A list separated by commas, without hidden characters.' }),
  state: SkillState.default('active'),
});

export const skillRoutes: readonly Route[] = [
  route('POST /skills', {
    operation: 'create_skill',
    tag: 'skills',
    summary: 'Store a skill; equal skills are deduplicated',
    description:
      'For an equal skill, the answer is 200 with its id. Only admin keys can set counts and times. A skill of any other key is a candidate with one success.',
    scope: 'skill:write',
    body: json(SkillRequest, 'data'),
    responses: { 200: SkillCreated, 201: SkillCreated },
    handle: async (ctx, { caller, body }) => {
      const { id, is_new } = await createSkill(ctx, caller, body);
      return { status: is_new ? 201 : 200, body: { id } };
    },
  }),
  route('GET /skills', {
    operation: 'list_skills',
    tag: 'skills',
    summary: 'List skills, by confidence, then by last use',
    description: 'With `signals`, the list contains only skills that need no other signals.',
    scope: 'skill:read',
    query: SkillQuery,
    responses: { 200: SkillList },
    result: (ctx, { caller, query }) => findSkills(ctx, caller, query),
  }),
  route('GET /skills/{id}', {
    operation: 'get_skill',
    tag: 'skills',
    summary: 'Get a skill, retired or not',
    scope: 'skill:read',
    params: IdPath,
    responses: { 200: Skill },
    result: (ctx, { caller, params }) => readSkill(ctx, caller, params.id),
  }),
  route('PATCH /skills/{id}', {
    operation: 'change_skill',
    tag: 'skills',
    summary: 'Change a skill; this makes a new version and clears its flag',
    description: 'Only admin keys set `trust`. A skill that another key changes becomes a candidate.',
    scope: 'skill:write',
    params: IdPath,
    body: json(SkillPatch, 'data'),
    responses: { 200: Skill },
    errors: ['state_conflict'],
    result: (ctx, { caller, params, body }) => patchSkill(ctx, { caller, skill_id: params.id }, body),
  }),
  route('POST /skills/{id}/retire', {
    operation: 'retire_skill',
    tag: 'skills',
    summary: 'Retire a skill; it keeps its id and is not applied any more',
    scope: 'skill:write',
    params: IdPath,
    responses: { 200: Skill },
    result: (ctx, { caller, params }) => retireSkill(ctx, caller, params.id),
  }),
  route('GET /skills/{id}/uses', {
    operation: 'list_skill_uses',
    tag: 'skills',
    summary: 'List the uses of a skill with their results, newest first',
    scope: 'skill:read',
    params: IdPath,
    query: ListQuery.strict(),
    responses: { 200: SkillUseList },
    result: (ctx, { caller, params, query }) =>
      readSkillUses(ctx, { project_id: caller.project_id, skill_id: params.id }, query),
  }),
  route('GET /skills/{id}/worth', {
    operation: 'get_skill_worth',
    tag: 'skills',
    summary: 'Show the savings and the origin of a skill',
    description: 'The savings are an estimate: each successful use saves the cost of learning the skill.',
    scope: 'skill:read',
    params: IdPath,
    responses: { 200: SkillWorth },
    result: (ctx, { caller, params }) => readSkillWorth(ctx, caller, params.id),
  }),
];
