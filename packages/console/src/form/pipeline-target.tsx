/** The choice of a pipeline and of the version that each start takes, for forms. */
import { useQuery } from '@tanstack/react-query';
import type { ReactElement, ReactNode } from 'react';
import { aliasesQuery } from '../api/aliases.ts';
import { pipelinesQuery, versionsQuery } from '../api/pipelines.ts';
import { fieldClass } from '../shared/parts.tsx';

export function Field({
  label,
  children,
}: {
  readonly label: string;
  readonly children: ReactNode;
}): ReactElement {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is its child
    <label className="flex flex-col gap-1">
      {label}
      {children}
    </label>
  );
}

interface PipelineTargetProps {
  readonly pipeline: string;
  readonly versionLabel: string;
  /** What was chosen before, for `readChoice`. */
  readonly choice?: string;
  readonly onChoose: (pipeline: string) => void;
}

/** The pipeline, and the version of it that a start takes: the field `choice` of the form, for `readChoice`. */
export function PipelineTarget({
  pipeline,
  versionLabel,
  choice = '',
  onChoose,
}: PipelineTargetProps): ReactElement {
  const pipelines = useQuery(pipelinesQuery()).data?.items ?? [];
  const isChosen = pipeline !== '';
  const aliases = useQuery({ ...aliasesQuery(pipeline), enabled: isChosen }).data?.items;
  const versions = useQuery({ ...versionsQuery(pipeline), enabled: isChosen }).data?.items;
  // A choice waits for both lists: the one that comes later would take it away.
  const isKnown = aliases !== undefined && versions !== undefined;
  return (
    <div className="flex flex-wrap gap-3">
      <Field label="Pipeline">
        <select
          required
          className={`${fieldClass} max-w-full`}
          value={pipeline}
          onChange={({ target }) => onChoose(target.value)}
        >
          <option value="">…</option>
          {pipelines.map(({ pipeline: name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </Field>
      {isKnown ? null : <input type="hidden" name="choice" value={choice} />}
      <Field label={versionLabel}>
        <select
          key={`${pipeline} ${isKnown}`}
          name="choice"
          defaultValue={choice}
          disabled={!isKnown}
          className={fieldClass}
        >
          <option value="">the latest</option>
          {aliases
            ?.filter(({ alias }) => alias !== 'latest')
            .map(({ alias, version }) => (
              <option key={alias} value={`alias ${alias}`}>
                alias {alias} (now {version})
              </option>
            ))}
          {versions?.map(({ version }) => (
            <option key={version} value={`version ${version}`}>
              always {version}
            </option>
          ))}
        </select>
      </Field>
    </div>
  );
}
