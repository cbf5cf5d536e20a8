import { type ReactElement, useState } from 'react';
import { Dialog } from '../../shared/dialog.tsx';
import { Button } from '../../shared/parts.tsx';
import { faultOfTerms, sameTerms, toTerms } from '../run/rerun-model.ts';
import { RunTermsFields } from '../run/run-terms.tsx';

interface RepeatDialogProps {
  /** `12 runs` */
  readonly runs: string;
  readonly onRepeat: (request: object) => void;
  readonly onClose: () => void;
}

/** Repeats several runs: which steps, under which budget and priority. */
export function RepeatDialog({ runs, onRepeat, onClose }: RepeatDialogProps): ReactElement {
  const [isWhole, setWhole] = useState(false);
  const [terms, setTerms] = useState(sameTerms);
  const fault = faultOfTerms(terms);
  const start = (): void => {
    onClose();
    onRepeat({ ...(isWhole ? {} : { only_failed: true }), ...toTerms(terms) });
  };
  return (
    <Dialog
      title={`Run ${runs} again`}
      onClose={onClose}
      footer={
        <Button look="primary" icon="rotate-cw" disabled={fault !== null} onClick={start}>
          Run {runs} again
        </Button>
      }
    >
      <fieldset className="flex flex-col gap-1.5 text-sm">
        <legend className="sr-only">Which steps run again</legend>
        <label className="flex items-center gap-2">
          <input type="radio" name="steps" checked={!isWhole} onChange={() => setWhole(false)} />
          Failed steps and items
        </label>
        <label className="flex items-center gap-2">
          <input type="radio" name="steps" checked={isWhole} onChange={() => setWhole(true)} />
          All steps
        </label>
      </fieldset>
      <RunTermsFields terms={terms} onChange={setTerms} />
      {fault === null ? null : <p className="mt-1 text-sm text-muted">{fault}</p>}
      <p className="mt-3 text-sm text-muted">
        Each run becomes a new one with the same job. A run that has not ended is refused.
      </p>
    </Dialog>
  );
}
