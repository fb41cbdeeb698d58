// What deploys keep of a node's earlier desired states, for `reeve rollback`.
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createOperator, type Operator } from '../../support/operator.ts';

describe('a deploy', () => {
  it('keeps the last five documents besides the present one', async () => {
    const operator = createOperator(['web-1']);
    for (let n = 1; n <= 7; n++) {
      await deploy(operator, `img:${n}`);
    }
    expect(keptImages(operator)).toEqual(['img:2', 'img:3', 'img:4', 'img:5', 'img:6', 'img:7']);
  });

  it('keeps what it replaces where that was not kept when it was written', async () => {
    const operator = createOperator(['web-1']);
    for (const n of [1, 2]) {
      await deploy(operator, `img:${n}`);
      // As a deploy leaves it that dies as soon as it has written.
      const [last = ''] = listKept(operator).slice(-1);
      rmSync(join(operator.root, 'store/nodes/web-1/deploys', last));
    }
    expect(keptImages(operator)).toEqual(['img:1']);
  });
});

async function deploy(operator: Operator, image: string): Promise<void> {
  const services = [{ project: 'blog', service: 'web', image, nodes: ['web-1'] }];
  const file = operator.write('blog.yaml', JSON.stringify({ services }));
  expect((await operator.reeve('deploy', file)).status).toBe(0);
}

/** Names of the documents that are kept of web-1, oldest first. */
function listKept(operator: Operator): string[] {
  return readdirSync(join(operator.root, 'store/nodes/web-1/deploys')).sort();
}

function keptImages(operator: Operator): (string | undefined)[] {
  return listKept(operator).map(
    (name) => operator.stored(`nodes/web-1/deploys/${name}`)?.match(/img:\d/)?.[0],
  );
}
