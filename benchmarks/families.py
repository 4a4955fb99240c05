"""What guides cost on each family of denoisers, in one process.

    python benchmarks/families.py [--only NAME] [--batch 2] [--length 64] [--steps 6] [--repeats 4] [--threads 2]

Small random models of every family over the embedded vocabulary; the numbers say what guides add to a step, not how
fast a real checkpoint is. The share is what the guides add, in parts of the denoiser's own step: on models this small
it is large whatever the guides cost, and only the embedded denoiser's row is one of a model in use (the bar there is
15 % at --batch 8). LLaDA, Dream and MDLM are their adapters on a network of BERT's. Guided and unguided runs are
interleaved and repeated; medians over all steps but each run's first, in milliseconds, are printed. To add a family
write a function from a vocabulary to a denoiser and put it in FAMILIES.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import torch

from redraft.denoiser import Denoiser, Guide, Scene, Steering, Vocabulary, load, refine
from redraft.denoiser.randomness import Randomness
from redraft.guidance import Bias, Forbid, Keywords, Words

WIDTH, LAYERS, HEADS = 128, 4, 4
GUIDES: dict[str, list[Guide]] = {
    "unguided": [],
    "hard": [Keywords("lighthouse", "storm", anchor="free"), Words(15, 30), Forbid("very")],
    "hard and soft": [Keywords("lighthouse", anchor="free"), Words(15, 30), Bias({"sea": 2.0})],
}


def embedded(vocabulary: Vocabulary) -> Denoiser:
    """The denoiser of the package, with its own weights."""
    return load()


SIZES: dict[str, int] = {
    "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 4 * WIDTH,
}  # fmt: skip


def bert(vocabulary: Vocabulary) -> Denoiser:
    """BERT's native class."""
    from transformers import BertConfig, BertForMaskedLM

    from redraft.denoiser.models.masked_lm import MaskedLM

    config = BertConfig(vocab_size=len(vocabulary), **SIZES)
    return MaskedLM(BertForMaskedLM(config), vocabulary, name="bert")


def roberta(vocabulary: Vocabulary) -> Denoiser:
    """RoBERTa's native class."""
    from transformers import RobertaConfig, RobertaForMaskedLM

    from redraft.denoiser.models.masked_lm import MaskedLM

    config = RobertaConfig(vocab_size=len(vocabulary), pad_token_id=vocabulary.pad_id, **SIZES)
    return MaskedLM(RobertaForMaskedLM(config), vocabulary, name="roberta")


def modernbert(vocabulary: Vocabulary) -> Denoiser:
    """ModernBERT's native class."""
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    from redraft.denoiser.models.masked_lm import MaskedLM

    config = ModernBertConfig(
        vocab_size=len(vocabulary), pad_token_id=vocabulary.pad_id, bos_token_id=0, cls_token_id=0,
        eos_token_id=vocabulary.eos_id, sep_token_id=vocabulary.eos_id, **SIZES,
    )  # fmt: skip
    return MaskedLM(ModernBertForMaskedLM(config), vocabulary, name="modernbert")


class StandIn(torch.nn.Module):
    """A bidirectional network that is called as code that comes with a checkpoint is: whatever it is given besides."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        from transformers import BertConfig, BertForMaskedLM

        super().__init__()
        self.body = BertForMaskedLM(BertConfig(vocab_size=len(vocabulary), **SIZES))

    def forward(self, input_ids: torch.Tensor, *args: Any, **options: Any) -> Any:
        return self.body(input_ids=input_ids)


def llada(vocabulary: Vocabulary) -> Denoiser:
    """LLaDA's adapter on a stand-in."""
    from redraft.denoiser.models.llada import LLaDA

    return LLaDA(StandIn(vocabulary), vocabulary, name="llada")


def dream(vocabulary: Vocabulary) -> Denoiser:
    """Dream's adapter on a stand-in: logits shifted by one."""
    from redraft.denoiser.models.dream import Dream

    return Dream(StandIn(vocabulary), vocabulary, name="dream")


def mdlm(vocabulary: Vocabulary) -> Denoiser:
    """MDLM's adapter on a stand-in: a noise level beside the tokens."""
    from redraft.denoiser.models.mdlm import MDLM

    return MDLM(StandIn(vocabulary), vocabulary, name="mdlm")


def diffusion_gemma(vocabulary: Vocabulary) -> Denoiser:
    """DiffusionGemma's native class, canvases of 32 tokens."""
    from transformers import DiffusionGemmaConfig, DiffusionGemmaTextConfig
    from transformers.models.diffusion_gemma import DiffusionGemmaForBlockDiffusion
    from transformers.models.gemma4 import Gemma4VisionConfig

    from redraft.denoiser.models.diffusion_gemma import DiffusionGemma

    text = DiffusionGemmaTextConfig(
        vocab_size=len(vocabulary), hidden_size=WIDTH, intermediate_size=4 * WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=2, head_dim=WIDTH // HEADS, global_head_dim=WIDTH // HEADS,
        num_experts=4, top_k_experts=2, moe_intermediate_size=WIDTH, max_position_embeddings=512,
        layer_types=["sliding_attention"] * (LAYERS - 1) + ["full_attention"],
        pad_token_id=vocabulary.pad_id, eos_token_id=vocabulary.eos_id, bos_token_id=0,
    )  # fmt: skip
    vision = Gemma4VisionConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
        head_dim=8,
    )  # fmt: skip
    config = DiffusionGemmaConfig(text_config=text, vision_config=vision, canvas_length=32)
    return DiffusionGemma(DiffusionGemmaForBlockDiffusion(config), vocabulary, name="diffusion-gemma")


def block_causal(vocabulary: Vocabulary) -> Denoiser:
    """A native decoder under the block mask, called as LLaDA2.x is; blocks of 32 tokens."""
    from transformers import LlamaConfig, LlamaForCausalLM

    from redraft.denoiser.models.block_causal import BlockCausal

    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=WIDTH, intermediate_size=4 * WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=2,
    )  # fmt: skip
    return BlockCausal(LlamaForCausalLM(config), vocabulary, name="block-causal", block=32)


FAMILIES: list[Callable[[Vocabulary], Denoiser]] = [
    embedded, bert, roberta, modernbert, llada, dream, mdlm, diffusion_gemma, block_causal,
]  # fmt: skip


def step_ms(denoiser: Denoiser, steering: Steering, steps: int, seed: int) -> list[tuple[float, float]]:
    """Milliseconds in the denoiser and outside it, for each step of one run but the first."""
    scene = steering.scene
    random = Randomness(range(seed, seed + scene.batch), denoiser.device)
    canvas = denoiser.noise.blank(scene.length, random)
    prompt = denoiser.prepare("The old man", scene.batch)
    settings = denoiser.settings.override(steps=steps)
    run = refine(denoiser, canvas, steering, prompt=prompt, settings=settings, random=random)
    return [(r.denoiser_ms, r.guidance_ms) for r in run][1:]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="")
    for name, value in (("batch", 2), ("length", 64), ("steps", 6), ("repeats", 4), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    vocabulary = load().vocabulary
    print("| family | guides | denoiser ms | outside ms | added ms | share |")
    print("| --- | --- | --- | --- | --- | --- |")
    for family in FAMILIES:
        if options.only not in family.__name__:
            continue
        torch.manual_seed(0)
        denoiser = family(vocabulary)
        scene = Scene(denoiser.vocabulary, denoiser.device, options.batch, options.length, options.steps)
        bound = {name: Steering(guides, scene) for name, guides in GUIDES.items()}
        spent: dict[str, list[tuple[float, float]]] = {name: [] for name in bound}
        for repeat in range(options.repeats):
            for name, steering in bound.items():
                spent[name] += step_ms(denoiser, steering, options.steps, 100 * repeat)
        plain = statistics.median(outside for _, outside in spent["unguided"])
        for name in bound:
            inside, outside = (statistics.median(column) for column in zip(*spent[name], strict=True))
            print(
                f"| {family.__name__} | {name} | {inside:.1f} | {outside:.1f} | {outside - plain:.1f} "
                f"| {100 * (outside - plain) / inside:.0f} % |"
            )


if __name__ == "__main__":
    main()
