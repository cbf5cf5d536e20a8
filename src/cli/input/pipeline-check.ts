/** Validation of a file by the API, as `validate` shows it and `run` requires it. */
import { type Validation, Validation as ValidationAnswer } from '../../contracts/pipeline.ts';
import type { ApiAnswer } from '../client/api-client.ts';
import type { Session } from '../client/session.ts';
import { renderFindings } from '../render/findings.ts';
import type { SourceFile } from './source-file.ts';

export function validateSource(
  { client }: Session,
  { text, type }: SourceFile,
  strict: boolean,
): Promise<ApiAnswer<Validation>> {
  return client.post(`/v1/pipelines/validate${strict ? '?strict=true' : ''}`, ValidationAnswer, {
    text,
    type,
  });
}

/** To stdout for `validate`; to stderr where the findings are not the result. */
export function showFindings(
  { print }: Session,
  findings: Validation['findings'],
  source: SourceFile,
  to: 'line' | 'remark',
): void {
  renderFindings(findings, source, print).forEach(print[to]);
}
