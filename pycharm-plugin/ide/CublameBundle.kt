package dev.cublame.ide

import com.intellij.DynamicBundle
import dev.cublame.core.Age
import dev.cublame.core.AgeUnit
import dev.cublame.core.Mode

/** The plugin's words, in the language of the IDE. */
internal object CublameBundle {
    private val bundle = DynamicBundle(CublameBundle::class.java, "messages.CublameBundle")

    fun message(key: String, vararg parameters: Any): String = bundle.getMessage(key, *parameters)

    fun name(mode: Mode): String = message("mode.${mode.word}.name")

    /** What the mode gives, and what it costs. */
    fun explanation(mode: Mode): String = message("mode.${mode.word}.benefit") + " " + message("mode.${mode.word}.cost")

    fun age(age: Age): String = when (age.unit) {
        AgeUnit.NOW -> message("age.now")
        AgeUnit.MINUTES -> message("age.minutes", age.amount)
        AgeUnit.HOURS -> message("age.hours", age.amount)
        AgeUnit.DAYS -> message("age.days", age.amount)
    }
}
