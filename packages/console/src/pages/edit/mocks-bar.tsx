import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { useMutation } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { readFormerRun } from '../../api/former-run.ts';
import { AnswerError } from '../../api/problem-error.ts';
import { FileButton } from '../../shared/file-button.tsx';
import { formatBytes } from '../../shared/format.ts';
import { Button } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { saveText } from '../../shared/save-text.ts';
import type { CheckedText, LiveSpecs, Tried } from '../../worker/messages.ts';
import { mocksOfRun, saveMocks, writeMocks } from './mocks-model.ts';

export interface MocksBarProps {
  readonly mocks: string;
  readonly specs: LiveSpecs;
  readonly pipelines: readonly PipelineDefinition[];
  readonly checked: CheckedText;
  readonly tried: Tried | null;
  readonly onMocks: (mocks: string | null) => void;
}

const mostBytes = 4_000_000;

/** Loads and saves mocks: from a past run or a file, and to the file that the command line tests with. */
export function MocksBar(props: MocksBarProps): ReactElement {
  const { mocks, specs, pipelines, checked, tried, onMocks } = props;
  const { definition } = checked;
  const result = tried?.result ?? null;
  const former = useMutation({
    mutationFn: async (pipeline: string) => {
      const found = await readFormerRun(pipeline);
      if (found === null) {
        const detail = `No run of ${pipeline} has ended. Mocks can come from the first one that does.`;
        throw new AnswerError(404, { title: 'No run to take mocks from', detail });
      }
      onMocks(writeMocks(mocksOfRun(found, specs), found.run.run_id));
    },
  });
  const load = useMutation({
    mutationFn: async (file: File) => {
      if (file.size > mostBytes)
        throw new Error(`${file.name} has ${formatBytes(file.size)}; ${formatBytes(mostBytes)} are allowed`);
      onMocks(await file.text());
    },
  });
  const problem = former.error ?? load.error;
  return (
    <div className="flex flex-wrap items-center gap-2 text-sm">
      <Button
        icon="recycle"
        disabled={definition === null || former.isPending}
        onClick={() => definition !== null && former.mutate(definition.pipeline)}
      >
        Mocks from the last run
      </Button>
      <Button disabled={definition === null} onClick={() => onMocks(null)}>
        Fresh mocks
      </Button>
      <FileButton label="A mocks file" accept=".yaml,.yml,.json" onFile={load.mutate}>
        Load a file
      </FileButton>
      <Button
        icon="download"
        disabled={definition === null || result === null}
        title="With what came of them now as what is expected"
        onClick={() => {
          if (definition === null || result === null) return;
          const saved = saveMocks({ text: mocks, definition, specs, pipelines, result });
          saveText('mocks.yaml', 'application/yaml', saved);
        }}
      >
        Save mocks.yaml
      </Button>
      {problem === null ? null : <ProblemView error={problem} />}
    </div>
  );
}
