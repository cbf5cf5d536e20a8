import type { Skill, SkillPatch, SkillUse, SkillWorth } from '@capstan/core/contracts/skill';
import { queryOptions } from '@tanstack/react-query';
import { askPlainly } from './client.ts';

export function skillsQuery() {
  return queryOptions({ queryKey: ['skills'], queryFn: () => askPlainly<readonly Skill[]>('/skills') });
}

export function skillQuery(id: string) {
  return queryOptions({ queryKey: ['skill', id], queryFn: () => askPlainly<Skill>(`/skills/${id}`) });
}

export function skillUsesQuery(id: string) {
  return queryOptions({
    queryKey: ['skill', id, 'uses'],
    queryFn: () => askPlainly<{ readonly items: readonly SkillUse[] }>(`/skills/${id}/uses?limit=200`),
  });
}

export function skillWorthQuery(id: string) {
  return queryOptions({
    queryKey: ['skill', id, 'worth'],
    queryFn: () => askPlainly<SkillWorth>(`/skills/${id}/worth`),
  });
}

export function patchSkill(id: string, patch: SkillPatch): Promise<unknown> {
  return askPlainly(`/skills/${id}`, { method: 'PATCH', body: patch });
}

export function retireSkill(id: string): Promise<unknown> {
  return askPlainly(`/skills/${id}/retire`, { method: 'POST' });
}
