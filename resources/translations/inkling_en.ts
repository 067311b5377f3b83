<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en">
<context>
    <name>ProblemsView</name>
    <message numerus="yes">
        <source>%Ln files could not be read. They are tried again when they change.</source>
        <translation>
            <numerusform>%Ln file could not be read. It is tried again when it changes.</numerusform>
            <numerusform>%Ln files could not be read. They are tried again when they change.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>SearchView</name>
    <message numerus="yes">
        <source>%Ln results</source>
        <translation>
            <numerusform>%Ln result</numerusform>
            <numerusform>%Ln results</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>StatusLine</name>
    <message numerus="yes">
        <source>Paused. %Ln files are waiting.</source>
        <translation>
            <numerusform>Paused. %Ln file is waiting.</numerusform>
            <numerusform>Paused. %Ln files are waiting.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>empty</name>
    <message numerus="yes">
        <source>%Ln files are still to be read. This search repeats itself as they come in.</source>
        <translation>
            <numerusform>%Ln file is still to be read. This search repeats itself when it comes in.</numerusform>
            <numerusform>%Ln files are still to be read. This search repeats itself as they come in.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln files are still to be read; what has been read can be searched now.</source>
        <translation>
            <numerusform>%Ln file is still to be read; what has been read can be searched now.</numerusform>
            <numerusform>%Ln files are still to be read; what has been read can be searched now.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln files could not be read; it may be in one of them.</source>
        <translation>
            <numerusform>%Ln file could not be read; it may be in that one.</numerusform>
            <numerusform>%Ln files could not be read; it may be in one of them.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln passages are still to be understood; until then they are found by their words only. This search repeats itself meanwhile.</source>
        <translation>
            <numerusform>%Ln passage is still to be understood; until then it is found by its words only. This search repeats itself meanwhile.</numerusform>
            <numerusform>%Ln passages are still to be understood; until then they are found by their words only. This search repeats itself meanwhile.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Search %Ln documents</source>
        <translation>
            <numerusform>Search %Ln document</numerusform>
            <numerusform>Search %Ln documents</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>wording</name>
    <message numerus="yes">
        <source>%Ln days</source>
        <translation>
            <numerusform>%Ln day</numerusform>
            <numerusform>%Ln days</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln documents</source>
        <translation>
            <numerusform>%Ln document</numerusform>
            <numerusform>%Ln documents</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln files</source>
        <translation>
            <numerusform>%Ln file</numerusform>
            <numerusform>%Ln files</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln hours</source>
        <translation>
            <numerusform>%Ln hour</numerusform>
            <numerusform>%Ln hours</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln minutes</source>
        <translation>
            <numerusform>%Ln minute</numerusform>
            <numerusform>%Ln minutes</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln problems</source>
        <translation>
            <numerusform>%Ln problem</numerusform>
            <numerusform>%Ln problems</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln seconds</source>
        <translation>
            <numerusform>%Ln second</numerusform>
            <numerusform>%Ln seconds</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln waiting</source>
        <translation>
            <numerusform>%Ln waiting</numerusform>
            <numerusform>%Ln waiting</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>+%Ln copies</source>
        <translation>
            <numerusform>+%Ln copy</numerusform>
            <numerusform>+%Ln copies</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>+%Ln passages</source>
        <translation>
            <numerusform>+%Ln passage</numerusform>
            <numerusform>+%Ln passages</numerusform>
        </translation>
    </message>
</context>
</TS>
