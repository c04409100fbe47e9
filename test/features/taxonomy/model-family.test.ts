import fc from 'fast-check';
import { model_families, modelFamily } from '../../../src/features/taxonomy/model-family.js';
import { timeAtBest } from '../../help/stopwatch.js';
import { t } from '../../help/tap.js';

/** Model names by family, separated by `|`. */
const names_by_family: Readonly<Record<string, string>> = {
  gpt:
    'gpt-4o | gpt-4o-mini | GPT-4 Turbo | gpt4 | gpt-5 | gpt-oss-120b | openai/gpt-4.1 | ' +
    'openai:gpt-4o | azure/my-gpt-4-deployment | chatgpt-4o-latest | o1 | o1-preview | ' +
    'o3-mini | o4-mini | openai/o3 | codex-mini-latest | text-davinci-003 | ' +
    'ft:gpt-4o-mini-2024-07-18:org::abc | openrouter/openai/gpt-4o | gpt-3.5-turbo-0125 | ' +
    'us.openai.gpt-oss-20b-1:0',
  claude:
    'claude-3-5-sonnet-20241022 | Claude Opus 4 | claude-instant-1.2 | ' +
    'anthropic/claude-sonnet-4 | anthropic.claude-v2:1 | anthropic:claude-3-haiku | ' +
    'us.anthropic.claude-3-5-sonnet-20240620-v1:0 | sonnet-4.5 | ' +
    'vertex_ai/claude-3-opus@20240229',
  gemini:
    'gemini-2.5-pro | models/gemini-1.5-flash | google/gemini-2.0-flash-001 | ' +
    'Gemini Ultra | google-gla:gemini-1.5-pro | gemini/gemini-1.5-pro',
  llama:
    'llama-3.1-405b-instruct | meta-llama/Llama-3.3-70B-Instruct | Meta-Llama-3-8B | ' +
    'llama2:13b | ollama/llama3 | us.meta.llama3-1-70b-instruct-v1:0 | codellama-34b | ' +
    'TinyLlama-1.1B | nvidia/llama-3.1-nemotron-70b-instruct | dolphin-2.9-llama3-8b | ' +
    'Llama-3.1-SuperNova-Lite | accounts/fireworks/models/llama-v3p1-8b-instruct | ' +
    'arcee-ai/supernova-llama-70b',
  mistral:
    'mistral-large-latest | mistralai/Mixtral-8x7B-Instruct-v0.1 | open-mixtral-8x22b | ' +
    'ministral-8b | codestral-2405 | magistral-medium | pixtral-12b | devstral-small | ' +
    'dolphin-mixtral | mistral.mistral-7b-instruct-v0:2 | Nous-Hermes-2-Mixtral-8x7B',
  deepseek:
    'deepseek-chat | deepseek-r1 | deepseek-ai/DeepSeek-V3 | us.deepseek.r1-v1:0 | ' +
    'deepseek/r1 | DeepSeek-R1-Distill-Llama-70B | deepseek-r1-distill-qwen-32b',
  qwen:
    'qwen2.5-72b-instruct | Qwen/Qwen3-235B-A22B | qwq-32b | Qwen/QwQ-32B-Preview | ' +
    'qvq-72b-preview | codeqwen-7b | qwen/qwen-max',
  grok: 'grok-2-1212 | x-ai/grok-4 | Grok 3 | xai.grok-beta | grok-code-fast-1',
  command:
    'command-r-plus | cohere.command-r-v1:0 | CohereForAI/c4ai-command-r-v01 | Command R+ | ' +
    'command-a-03-2025',
  phi: 'phi-4 | microsoft/Phi-3-mini-4k-instruct | phi3:medium | Phi 3.5 | dolphin-phi-2',
  gemma: 'gemma-2-9b-it | google/gemma-3-27b-it | codegemma-7b | medgemma-4b | gemma:2b',
  nova: 'amazon.nova-pro-v1:0 | us.amazon.nova-lite-v1:0 | amazon/nova-micro | Nova Premier',
  glm: 'glm-4.5 | z-ai/glm-4.6 | THUDM/chatglm3-6b | zai-org/GLM-4.5-Air | codegeex4',
  kimi: 'kimi-k2 | moonshotai/kimi-k2-instruct | moonshot-v1-128k | Kimi K2 Thinking',
  other:
    'dolphin | dolphin-2.5 | supernova-medius | falcon-180b | openai/whisper-1 | gpt-j-6b | ' +
    'EleutherAI/gpt-neox-20b | gpt4all | groq/compound | ollama/orca-mini | titan-text | ' +
    'my bot | olmo-2 | sophia | jamba-1.5 | commander-7b | novartis-model | o-series | ' +
    'opusculum | / | opera | philosopher | google | ',
};
const all_names = Object.entries(names_by_family).flatMap(([family, names]) =>
  names.split(' | ').map((name) => ({ family, name })),
);

t.test('real model names fall into the family a person would expect, in any case', async (t) => {
  t.same(Object.keys(names_by_family).sort(), [...model_families].sort(), 'every family is tried');
  for (const { family, name } of all_names) {
    t.equal(modelFamily(name), family, name);
    t.equal(modelFamily(`  ${name.toUpperCase()} `), family, name);
  }
});

t.test('any text has a family', async () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 100 }), (name) =>
      (model_families as readonly string[]).includes(modelFamily(name)),
    ),
  );
});

t.test('a long hostile name is decided at once', async (t) => {
  const names = ['us.', 'ft:', 'models/', 'openai/', 'o1', '/', 'command-', 'nova-'];
  const work = () => names.forEach((name) => void modelFamily(name.repeat(2_000)));
  t.ok(timeAtBest(work, 500) < 500);
});
