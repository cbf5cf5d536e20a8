/** Other names: of models, and of versions of a pipeline. */
import type { ModelAlias } from '@capstan/core/contracts/model-alias';
import type { Alias } from '@capstan/core/contracts/pipeline-answers';
import { queryOptions } from '@tanstack/react-query';
import { askPlainly } from './client.ts';

export function modelAliasesQuery() {
  return queryOptions({
    queryKey: ['aliases'],
    queryFn: () => askPlainly<{ readonly items: readonly ModelAlias[] }>('/v1/aliases'),
  });
}

/** A name may contain slashes, which are part of the path. */
function pathOf(name: string): string {
  return `/v1/aliases/${name.split('/').map(encodeURIComponent).join('/')}`;
}

export function putModelAlias({ name, capability }: Pick<ModelAlias, 'name' | 'capability'>) {
  return askPlainly<ModelAlias>(pathOf(name), { method: 'PUT', body: { capability } });
}

export function deleteModelAlias(name: string): Promise<unknown> {
  return askPlainly(pathOf(name), { method: 'DELETE' });
}

export function aliasesQuery(pipeline: string) {
  return queryOptions({
    queryKey: ['pipeline', pipeline, 'aliases'],
    queryFn: () => askPlainly<{ readonly items: readonly Alias[] }>(`/v1/pipelines/${pipeline}/aliases`),
  });
}

export function putAlias(pipeline: string, alias: string, version: string): Promise<unknown> {
  const path = `/v1/pipelines/${pipeline}/aliases/${encodeURIComponent(alias)}`;
  return askPlainly(path, { method: 'PUT', body: { version } });
}

export function deleteAlias(pipeline: string, alias: string): Promise<unknown> {
  return askPlainly(`/v1/pipelines/${pipeline}/aliases/${encodeURIComponent(alias)}`, { method: 'DELETE' });
}
