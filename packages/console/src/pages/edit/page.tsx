import { useQuery } from '@tanstack/react-query';
import { useParams, useSearch } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { pipelineQuery } from '../../api/pipelines.ts';
import { QueryView } from '../../shared/query-view.tsx';
import { sourceOf } from '../pipeline/source-text.ts';
import { readDraft } from './draft.ts';
import { EditorDesk } from './editor-desk.tsx';
import { examplePipeline } from './example.ts';

/** `new` begins with an example; another name with its stored text, or its draft. */
export function EditPage(): ReactElement {
  const { name } = useParams({ from: '/pipelines/$name/edit' });
  const { version } = useSearch({ from: '/pipelines/$name/edit' });
  const draft = readDraft(name);
  const isNew = name === 'new';
  const query = useQuery({ ...pipelineQuery(name, version), enabled: !isNew });
  if (isNew) {
    return <EditorDesk name={name} stored="" begin={draft ?? { text: examplePipeline, mocks: null }} />;
  }
  return (
    <QueryView query={query}>
      {(stored) => (
        <EditorDesk
          key={`${name} ${version}`}
          name={name}
          stored={sourceOf(stored)}
          begin={draft ?? { text: sourceOf(stored), mocks: null }}
        />
      )}
    </QueryView>
  );
}
