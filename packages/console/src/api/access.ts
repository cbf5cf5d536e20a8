import type { AuditEntry, Key, KeyCreated, Project } from '@capstan/core/contracts/access';
import type { Limits } from '@capstan/core/contracts/request-limits';
import { queryOptions } from '@tanstack/react-query';
import { askPlainly } from './client.ts';

interface ListOf<Item> {
  readonly items: readonly Item[];
}

export function keysQuery() {
  return queryOptions({ queryKey: ['keys'], queryFn: () => askPlainly<ListOf<Key>>('/v1/keys?limit=200') });
}

export function projectsQuery() {
  return queryOptions({
    queryKey: ['projects'],
    queryFn: () => askPlainly<ListOf<Project>>('/v1/projects?limit=200'),
  });
}

/** @param content_days null: none are kept, and those that there are are deleted */
export function keepContents(projectId: string, content_days: number | null): Promise<Project> {
  return askPlainly(`/v1/projects/${projectId}/settings`, { method: 'PUT', body: { content_days } });
}

export function auditQuery() {
  return queryOptions({
    queryKey: ['audit'],
    queryFn: () => askPlainly<ListOf<AuditEntry>>('/v1/audit?limit=100'),
  });
}

/** Actions on several runs, the newest first. */
export function bulkActionsQuery() {
  return queryOptions({
    queryKey: ['audit', 'runs'],
    queryFn: () => askPlainly<ListOf<AuditEntry>>('/v1/audit?subject=runs&limit=50'),
  });
}

export function limitsQuery() {
  return queryOptions({
    queryKey: ['limits'],
    queryFn: () => askPlainly<Limits>('/v1/limits'),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function createKey(body: object): Promise<KeyCreated> {
  return askPlainly('/v1/keys', { method: 'POST', body });
}

export function rotateKey(keyId: string): Promise<KeyCreated> {
  return askPlainly(`/v1/keys/${encodeURIComponent(keyId)}/rotate`, { method: 'POST', body: {} });
}

export function revokeKey(keyId: string): Promise<unknown> {
  return askPlainly(`/v1/keys/${encodeURIComponent(keyId)}`, { method: 'DELETE' });
}
