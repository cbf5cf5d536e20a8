import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { storeText } from '../../api/pipelines.ts';
import { TextDiff } from '../../diff/text-diff.tsx';
import { Dialog } from '../../shared/dialog.tsx';
import { Button, fieldClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { dropDraft } from './draft.ts';
import { nextVersion, versionOf, withVersion } from './version-model.ts';

export interface StoreDialogProps {
  readonly name: string;
  readonly stored: string;
  readonly text: string;
  readonly onClose: () => void;
}

/** Shows the changes, and asks for the new version. */
export function StoreDialog({ name, stored, text, onClose }: StoreDialogProps): ReactElement {
  const former = versionOf(stored);
  const written = versionOf(text) ?? '1.0';
  const [version, setVersion] = useState(
    former !== null && former === written ? nextVersion(former) : written,
  );
  const navigate = useNavigate();
  const queries = useQueryClient();
  const next = withVersion(text, version);
  const store = useMutation({
    mutationFn: () => storeText(next),
    onSuccess: async ({ pipeline }) => {
      dropDraft(name);
      await queries.invalidateQueries({ queryKey: ['pipeline'] });
      await queries.invalidateQueries({ queryKey: ['pipelines'] });
      void navigate({ to: '/pipelines/$name', params: { name: pipeline } });
    },
  });
  return (
    <Dialog
      title="Save version"
      onClose={onClose}
      footer={
        <Button
          look="primary"
          disabled={store.isPending || version.trim() === ''}
          onClick={() => store.mutate()}
        >
          Save {version}
        </Button>
      }
    >
      <label className="mb-3 flex items-center gap-2 text-sm">
        Version
        <input
          className={`${fieldClass} w-32`}
          value={version}
          onChange={({ target }) => setVersion(target.value)}
        />
        {former === null ? null : <span className="text-muted">latest: {former}</span>}
      </label>
      {store.error === null ? null : <ProblemView error={store.error} />}
      {stored === '' ? (
        <p className="text-sm text-muted">This is the first version.</p>
      ) : (
        <TextDiff before={stored} after={next} />
      )}
    </Dialog>
  );
}
