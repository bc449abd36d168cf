"""Recipes to run, with their options."""

from __future__ import annotations

import attrs
from tests.rigs.cookbook.materials import MODEL

LOSS = "train_mean_nll"
REWARD = "env/all/reward/total"


@attrs.frozen(kw_only=True)
class Recipe:
    """One recipe.

    Args:
        module: name of the module below ``tinker_cookbook``.
        options: command-line options, except for the log folder; the URL is in TINKER_BASE_URL.
        number: name of the metric that shows progress; empty if the recipe reports none.
        falls: True if the metric must be lower at the end, False if higher; None where so few steps prove nothing.
        start: recipe whose last checkpoint this recipe starts from.
        resumes: True if the recipe runs a second time, from the last checkpoint before its last step.
        races: True if its draws depend on the order in which several conversations receive responses.
        folder: log folder below the folder for runs, if the recipe has no option for it; empty if it does not log.
        stdin: text for the standard input.
    """

    module: str
    options: tuple[str, ...] = ()
    number: str = ""
    falls: bool | None = None
    start: str = ""
    resumes: bool = False
    races: bool = False
    folder: str | None = None
    stdin: str = ""


def split_options(text: str) -> tuple[str, ...]:
    """Return the options of a command line."""
    return tuple(text.split())


COMMON = f"model_name={MODEL} renderer_name=role_colon behavior_if_log_dir_exists=resume"

RECIPES = (
    Recipe(
        module="recipes.sl_loop",
        options=split_options("batch_size=64 learning_rate=3e-3 save_every=4"),
        number=LOSS,
        falls=True,
        resumes=True,
    ),
    Recipe(
        module="recipes.sl_basic",
        options=split_options("learning_rate=3e-3 num_epochs=2 eval_every=4 save_every=4"),
        number=LOSS,
        falls=True,
        resumes=True,
        stdin="resume\n",
    ),
    Recipe(
        module="recipes.chat_sl.train",
        options=split_options(
            f"{COMMON} dataset=boxed.jsonl batch_size=32 num_epochs=2 learning_rate=5e-3 save_every=20 eval_every=10"
        ),
        number=LOSS,
        falls=True,
        resumes=True,
    ),
    Recipe(
        module="recipes.prompt_distillation.train",
        options=split_options(f"{COMMON} file_path=conversations.jsonl batch_size=16 num_epochs=2 learning_rate=3e-3"),
        number=LOSS,
        falls=True,
    ),
    Recipe(
        module="recipes.rl_loop",
        options=split_options(
            "batch_size=8 group_size=4 max_tokens=20 learning_rate=1e-3 max_steps=3 save_every=2 "
            "loss_fn=importance_sampling"
        ),
        number="reward/total",
    ),
    Recipe(
        module="recipes.rl_basic",
        options=split_options("max_tokens=20 learning_rate=1e-3 max_steps=2 save_every=1"),
        number=REWARD,
        start="recipes.chat_sl.train",
    ),
    Recipe(
        module="recipes.math_rl.train",
        options=split_options(
            f"{COMMON} env=gsm8k groups_per_batch=16 group_size=8 max_tokens=20 learning_rate=2e-3 max_steps=8 "
            "save_every=4 eval_every=4 loss_fn=importance_sampling"
        ),
        number=REWARD,
        falls=False,
        start="recipes.chat_sl.train",
        resumes=True,
    ),
    Recipe(
        module="recipes.multiplayer_rl.guess_number.train",
        options=split_options(f"{COMMON} group_size=4 batch_size=2 max_tokens=8 max_steps=2 eval_every=0 save_every=1"),
        number=REWARD,
        races=True,
    ),
    Recipe(
        module="recipes.preference.shorter.train",
        options=split_options(f"{COMMON} group_size=4 batch_size=4 max_tokens=16 max_steps=3 eval_every=2"),
        number=REWARD,
    ),
    Recipe(
        module="recipes.preference.dpo.train",
        options=split_options(f"{COMMON} batch_size=16 learning_rate=1e-3 max_length=512"),
        number="dpo_loss",
        falls=True,
    ),
    Recipe(
        module="recipes.preference.rlhf.rlhf_pipeline",
        options=split_options(
            "short_name=bytes batch_size=16 rl_group_size=3 rl_max_tokens=16 max_length=512 max_steps=3 eval_every=0"
        ),
        number=REWARD,
        folder="rlhf-bytes/rl",
    ),
    Recipe(
        module="recipes.distillation.on_policy_distillation",
        options=split_options(
            f"{COMMON} teacher_model={MODEL} dataset=deepmath groups_per_batch=8 group_size=2 max_tokens=16 "
            "lora_rank=32 learning_rate=1e-3"
        ),
        number="teacher_kl",
    ),
    Recipe(
        module="recipes.distillation.on_policy_multi_teacher",
        options=split_options(
            f"{COMMON} deepmath_teacher_model={MODEL} tulu3_teacher_model={MODEL} deepmath_groups_per_batch=4 "
            "tulu3_groups_per_batch=4 group_size=2 max_tokens=16 lora_rank=32 max_steps=3 eval_every=0"
        ),
        number="teacher_kl",
    ),
    Recipe(
        module="recipes.sdft.train",
        options=split_options(
            f"{COMMON} dataset=toolalpaca lora_rank=32 groups_per_batch=8 max_tokens=16 max_steps=3 topk=5 "
            "max_context_length=2000 eval_every=0"
        ),
    ),
    Recipe(
        module="recipes.decisions.demo",
        options=(f"model_name={MODEL}",),
        folder="",
        stdin="How do I pay?\n\n",
    ),
    Recipe(module="recipes.rubric.generate_data", folder=""),
    Recipe(
        module="recipes.rubric.train",
        options=split_options(
            f"{COMMON} grader_llm_name={MODEL} grader_renderer_name=role_colon groups_per_batch=2 train_group_size=2 "
            "max_tokens=16 max_steps=2 eval_every=0 loss_fn=importance_sampling"
        ),
        number=REWARD,
    ),
    Recipe(module="recipes.multiplayer_rl.twenty_questions.train", options=split_options(f"{COMMON} max_steps=2")),
    Recipe(module="recipes.multiplayer_rl.text_arena.train", options=split_options(f"{COMMON} max_steps=2")),
    Recipe(module="recipes.rl_numerics_check.train", options=split_options(f"{COMMON} max_steps=2")),
    Recipe(module="recipes.distillation.off_policy_reasoning", options=split_options(f"{COMMON} max_steps=2")),
    Recipe(module="recipes.forecasting.train", options=split_options(f"{COMMON} max_steps=2")),
    Recipe(module="recipes.code_rl.train", options=split_options(f"{COMMON} max_steps=2")),
    Recipe(module="recipes.search_tool.train", options=split_options(f"{COMMON} max_steps=2")),
    Recipe(module="recipes.verifiers_rl.train", options=split_options(f"model_name={MODEL} max_steps=2")),
    Recipe(module="recipes.harbor_rl.scripts.train_terminal_bench", options=split_options(f"{COMMON} max_steps=2")),
    Recipe(
        module="recipes.vlm_classifier.train",
        options=split_options(f"{COMMON} max_steps=2 experiment_dir=vlm"),
        folder="",
    ),
    Recipe(module="recipes.audio.asr.sl_train", options=split_options(f"model_name={MODEL} max_steps=2")),
    Recipe(module="eval.run_inspect_evals", options=split_options(f"model_name={MODEL} tasks=gsm8k"), folder=""),
)
"""Every recipe that trains, in the order in which they run; what stops one here is found by running it."""
